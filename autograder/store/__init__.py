"""What lasts: submissions, executions, results and what people decided. `database.open_store` opens it."""
