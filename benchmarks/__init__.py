"""What the service costs beside its peers, measured on one PostgreSQL in interleaved rounds."""
