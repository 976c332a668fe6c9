"""One module a command: read the options, call the layers below, render. Decides nothing about tiers."""
