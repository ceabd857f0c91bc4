-- The tables stay as they are. From here on objects have fields, and are stored in versions, that only a plinth of
-- Kubernetes 1.37 knows. One of 1.33 would drop these fields where it writes, so its start has to be refused: it knows no
-- schema beyond 5.
DELETE FROM meta WHERE 1 = 0;
