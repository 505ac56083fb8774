"""The world beyond the log, each part behind a small interface: the writer of texts, the bank, the SMS gateway."""
