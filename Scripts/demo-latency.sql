-- Latency per stage, for Scripts/demo: joins the rings that gateway B logged with the server's commit times.
-- Both are CLOCK_MONOTONIC nanoseconds of this machine. Run in the folder that holds rings.log and commits.json.
-- Prints a table, and as the last line the members "rings" and "latency_ms" of a JSON object.
.mode list
.headers off

CREATE TEMP TABLE commits AS
  SELECT json_extract(value, '$.monotonic_ns') AS at
  FROM json_each(CAST(readfile('commits.json') AS TEXT), '$.commits');

CREATE TEMP TABLE rings AS
  SELECT
    json_extract(value, '$.frame_received_ns') AS frame, json_extract(value, '$.scheduler_woken_ns') AS woken,
    json_extract(value, '$.request_sent_ns') AS sent, json_extract(value, '$.response_received_ns') AS answered,
    json_extract(value, '$.committed_ns') AS committed
  FROM json_each('[' || replace(rtrim(CAST(readfile('rings.log') AS TEXT), char(10)), char(10), ',') || ']');

-- The commit that rang is the newest one before the frame.
CREATE TEMP TABLE ways AS
  SELECT (SELECT max(at) FROM commits WHERE at <= frame) AS started, * FROM rings;

CREATE TEMP TABLE samples(stage, title, ns, position);
INSERT INTO samples
  SELECT 'broadcast', 'server commit → frame received', frame - started, 1 FROM ways WHERE started IS NOT NULL
  UNION ALL SELECT 'wake', 'frame received → scheduler woken', woken - frame, 2 FROM ways WHERE started IS NOT NULL
  UNION ALL SELECT 'request', 'scheduler woken → request sent', sent - woken, 3 FROM ways WHERE started IS NOT NULL
  UNION ALL SELECT 'answer', 'request sent → response received', answered - sent, 4 FROM ways WHERE started IS NOT NULL
  UNION ALL SELECT 'commit', 'response received → SQLite committed', committed - answered, 5 FROM ways WHERE started IS NOT NULL
  UNION ALL SELECT 'total', 'total', committed - started, 6 FROM ways WHERE started IS NOT NULL;

-- Percentiles by nearest rank, milliseconds.
CREATE TEMP TABLE summary AS
  WITH ranked AS (
    SELECT
      *, row_number() OVER (PARTITION BY stage ORDER BY ns) AS rank, count(*) OVER (PARTITION BY stage) AS total
    FROM samples)
  SELECT
    position, stage, title,
    round(max(ns) FILTER (WHERE rank <= max(1, (total * 50 + 99) / 100)) / 1e6, 3) AS p50,
    round(max(ns) FILTER (WHERE rank <= max(1, (total * 90 + 99) / 100)) / 1e6, 3) AS p90,
    round(max(ns) FILTER (WHERE rank <= max(1, (total * 99 + 99) / 100)) / 1e6, 3) AS p99,
    round(max(ns) / 1e6, 3) AS max
  FROM ranked GROUP BY stage ORDER BY position;

SELECT printf('%-38s %9s %9s %9s %9s', 'milliseconds, ' || (SELECT count(*) FROM ways WHERE started IS NOT NULL) || ' rings',
  'p50', 'p90', 'p99', 'max');
SELECT printf('%s%s %9.3f %9.3f %9.3f %9.3f', title, substr('                                      ', length(title) + 1), p50, p90, p99, max)
FROM summary ORDER BY position;

SELECT printf('"rings":%d,"latency_ms":', (SELECT count(*) FROM ways WHERE started IS NOT NULL)) ||
  json_group_object(stage, json_object('p50', p50, 'p90', p90, 'p99', p99, 'max', max)) || '}'
FROM summary;
