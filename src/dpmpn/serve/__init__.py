"""The explorer: an HTTP API and a page in the browser where a person asks and sees why."""
