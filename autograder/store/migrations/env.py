"""Run by Alembic: migrates over the connection that `store.migrate` hands over."""

from alembic import context

from autograder.store.tables import metadata

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=metadata,
    transactional_ddl=True,
    render_as_batch=True,
)
context.run_migrations()
