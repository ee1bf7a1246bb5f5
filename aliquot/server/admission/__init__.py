"""Admission: priorities, webhooks and ResourceQuotas, before an object is stored."""
