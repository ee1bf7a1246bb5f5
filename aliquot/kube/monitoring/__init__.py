"""What Prometheus and Grafana are told of Aliquot: alerts, accounting, a dashboard."""
