-- The table of the pipeline orders in deploy/compose.yaml.
CREATE TABLE IF NOT EXISTS effects (order_id text, amount numeric);
