"""What an object passes before it is kept: priorities, resource quotas, webhooks."""
