document.documentElement.dataset.ready = "true"; // there is nothing else to set up
