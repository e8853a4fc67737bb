-- +goose Up

-- The email or message that the event of a delivery is about. The deliveries of
-- one of them to one endpoint are a queue (store/webhook_delivery.go).
ALTER TABLE webhook_deliveries ADD COLUMN message_seq BIGINT;
UPDATE webhook_deliveries SET message_seq = (SELECT e.message_seq FROM events e WHERE e.id = webhook_deliveries.event_id)
 WHERE next_attempt_at IS NOT NULL OR held_due IS NOT NULL;
CREATE INDEX webhook_deliveries_message ON webhook_deliveries (endpoint_seq, message_seq, seq)
 WHERE next_attempt_at IS NOT NULL AND message_seq IS NOT NULL;
