"""Azure Personalizer's API in two versions, v1.0 and 2022-09-01-preview, on the same loops (docs/personalizer.md)."""
