"""The embedded Laser Stack: speaks Apache Iggy's wire and Laser's managed band from one SQLite file. Imports no other room."""
