"""Azure Personalizer's two dialects over the same loops: v1.0 and 2022-09-01-preview (docs/personalizer.md)."""
