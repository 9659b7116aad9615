#!/bin/sh
# A tour of the command line, in a folder of its own: sh examples/cli.sh [FOLDER]
set -eu
folder=${1:-$(mktemp -d)}
cd "$folder"

# A network, good rows of it, and a copy in which one row of ten is bad.
robustbn convert example:alarm alarm.bif
robustbn sample alarm.bif -n 30000 -o good.parquet
robustbn corrupt alarm.bif good.parquet --kind mixture --eps 0.1 -o rows.csv

# Do they fit together? Then learn the tables, and keep everything.
robustbn inspect alarm.bif rows.csv --eps 0.1
robustbn fit alarm.bif rows.csv --output-dir result --model model.json

# How far from the truth, robustly and by counting (--method none)?
robustbn fit alarm.bif rows.csv --method none -o counted.bif --quiet
robustbn compare alarm.bif result/fitted.bif --top 3
robustbn compare alarm.bif counted.bif --top 3

# New rows, judged by the model; a pipeline would stop at exit code 1.
robustbn score model.json rows.csv --fail-over 5 --json > judged.json || echo "exit code $?"
echo "Open $folder/result/report.html in a browser."
