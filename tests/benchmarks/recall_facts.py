"""Facts that a session holds and questions about them, in the words of someone who half remembers.

Each is (what was said or shown, what is asked later). A question's words are not those of its fact
word for word: they are inflected, in another order, and among words that mean nothing.
"""

from __future__ import annotations

CHAT = (
    ("Our staging cluster lives in the Frankfurt region because of the data protection office.", "In which region did we put the staging clusters?"),
    ("Marta signs off every release that touches billing, nobody else may do it.", "Who has to sign off releases touching billing?"),
    ("The customer Nordwind still runs on Python 3.8, so the client library must not use match statements.", "Which customer is still running Python 3.8?"),
    ("Never restart the ingest workers on Mondays, the weekly import runs then.", "Why should I not be restarting the ingest worker on a Monday?"),
    ("I want the release notes in a friendly tone, without bullet points.", "What tone did I want for release notes?"),
    ("My favourite test data set is the one about Icelandic ferries.", "Which test data sets are my favourites?"),
    ("The password rotation for the warehouse happens every ninety days, and Tomasz owns it.", "Who owns rotating the warehouse's passwords?"),
    ("When the queue is drained we celebrate with lemon cake, remember that.", "What cake do we celebrate with once queues are drained?"),
    ("We must keep supporting the old XML feed until the end of March.", "Until when must the old XML feeds be supported?"),
    ("The nightly backup goes to a bucket called polar-bear-archive.", "What is the bucket that nightly backups go to?"),
    ("Please call the new scheduler Heron in all the documents.", "What name should the new scheduler get in documents?"),
    ("Our incident channel moved from Slack to Mattermost last week.", "Where did the incident channel move?"),
)  # fmt: skip

DECISION = (
    ("I suggest that we cache the exchange rates for six hours, since the upstream limits us to 50 calls a day.", "How long did you suggest caching exchange rates?"),
    ("The flaky test came from a shared temporary folder: two workers were deleting each other's lock file.", "What was the cause of the flaky test with the lock files?"),
    ("Decided: we paginate the orders endpoint with cursors, not with offsets.", "Did we decide on cursors or offsets when paginating the orders endpoint?"),
    ("The memory leak was in the thumbnail renderer, which kept every decoded frame.", "Where was that memory leaking, which renderer?"),
    ("I removed the retry around the payment call, because a second attempt could charge twice.", "Why was the retry around payment calls removed?"),
    ("We keep SQLite for the desktop build and move only the server to Postgres.", "For which build do we keep SQLite?"),
    ("The bug with daylight saving is fixed by storing all appointments in UTC.", "How was the daylight saving bug fixed for appointments?"),
    ("The migration has to be split in two, for the table lock would last eleven minutes otherwise.", "Why do we have to split the migration?"),
    ("The upload fails above two gigabytes since the proxy buffers whole bodies.", "Why are uploads failing above two gigabytes?"),
    ("I chose Dijkstra over A-star as the depot graph has no useful heuristic.", "Why was Dijkstra chosen for the depot graph?"),
    ("The translation strings are extracted with a script of ours instead of gettext.", "What do we extract translation strings with?"),
    ("After the review the feature flag for dark mode stays off in production.", "Is the dark mode feature flag on in production after reviewing?"),
)  # fmt: skip

LOG = (
    ("ERROR 14:22:07 courier: shipment label printer refused job, tray 3 empty", "What did the label printers refuse jobs for?"),
    ("WARN 03:10:44 replica lag 418 seconds behind primary on db-east", "How far was the replica lagging behind its primary?"),
    ("ERROR tls handshake with mirror.example.net failed: certificate expired on 2026-02-11", "When did the certificate of the mirror expire?"),
    ("FATAL could not map shared memory segment: Cannot allocate memory (requested 6442450944)", "Which segment could not be mapped because of allocation?"),
    ("FAILED tests/geo/test_polygons.py::test_hole_winding - assert 'cw' == 'ccw'", "Which polygon test failed on the winding of holes?"),
    ("npm ERR! peer dep missing: tapestry-core@^4.2.0, required by tapestry-cli@5.0.1", "Which peer dependency was missing for tapestry-cli?"),
    ("kernel: Out of memory: Killed process 30117 (osm-tiler) total-vm:9120044kB", "Which process got killed for running out of memory?"),
    ("rsync: connection unexpectedly closed (4711 bytes received so far) [receiver]", "How many bytes had rsync received when the connection closed unexpectedly?"),
    ("nginx: [emerg] duplicate location \"/healthz\" in /etc/nginx/conf.d/gate.conf:61", "In which nginx configuration is a location duplicated?"),
    ("audit: user kowalski granted role ledger_admin by svc-onboarding", "Who was granted the ledger admin role?"),
    ("cron: job vacuum_sessions skipped, previous run still holding the lock since 01:30", "Why was the vacuum sessions job skipped by cron?"),
    ("Traceback: KeyError: 'carrier_zone' in rates/zones.py line 212, in lookup_zone", "Which KeyError was raised when looking up zones?"),
)  # fmt: skip

JSON_FACTS = (
    ('"invoice_locale": "pt-BR"', "Which locale do invoices have?"),
    ('"max_open_tickets": 37', "How many tickets may be open at most?"),
    ('"fallbackCarrier": "PostNord"', "Who is the fallback carrier?"),
    ('"smtp_relay": "mail-7.internal.example"', "What SMTP relay is configured?"),
    ('"avatarBucket": "faces-eu-prod"', "What is the avatar bucket?"),
    ('"session_ttl_minutes": 95', "What TTL do sessions have in minutes?"),
    ('"loyaltyTierNames": ["pebble", "boulder", "mountain"]', "What are the names of the loyalty tiers?"),
    ('"webhook_secret_header": "X-Lantern-Signature"', "Which header holds the secret of webhooks?"),
    ('"default_warehouse": "GDN-2"', "What is the default for warehouses?"),
    ('"retryBackoffSeconds": [1, 5, 30, 240]', "How are the retry backoff seconds set?"),
    ('"featureFlags": {"parcelPooling": "beta"}', "In what state is the parcel pooling flag?"),
    ('"legal_entity": "Zephyr Logistics GmbH"', "What is our legal entity called?"),
)  # fmt: skip

CODE = (
    ("def normalise_postcode(raw: str) -> str:\n    return raw.replace(' ', '').upper()[:8]", "How are postcodes normalised, to how many characters?"),
    ("class ParcelWeigher:\n    TOLERANCE_GRAMS = 12", "What tolerance in grams does the parcel weigher have?"),
    ("MAX_PARALLEL_UPLOADS = 6  # the gateway closes the seventh", "How many parallel uploads are allowed at the maximum?"),
    ("async def drainOutbox(limit = 500) { await outbox.takeUntil(limit) }", "What is the limit when draining the outbox?"),
    ("fn checksum_frame(frame: &[u8]) -> u32 { crc32c(frame) ^ 0x5a5a_5a5a }", "How is the checksum of a frame computed?"),
    ("raise CustomsDocumentMissing(f'HS code needed for {country}')", "Which error do we raise when a customs document is missing?"),
    ("SELECT depot_id, avg(dwell_minutes) FROM stops GROUP BY depot_id HAVING avg(dwell_minutes) > 45", "Which query computes the average dwell minutes of depots?"),
    ("const GEOFENCE_RADIUS_METERS = 350;", "What radius do geofences have in metres or meters?"),
    ("@retry(attempts=4, on=GatewayTimeout)\ndef fetch_tariffs(): ...", "How many attempts has the retry on fetching tariffs?"),
    ("if driver.breaks_taken < 2 and shift.hours > 6: block_dispatch(driver)", "When is dispatching blocked for a driver?"),
    ("func RedactPhone(s string) string { return phonePattern.ReplaceAllString(s, \"***\") }", "What function redacts phone numbers?"),
    ("PALLET_TYPES = {'EUR1': (800, 1200), 'CHEP3': (1140, 1140)}", "What dimensions does pallet type CHEP3 have?"),
)  # fmt: skip

PATHS = (
    ("infra/terraform/modules/bastion/egress_rules.tf", "Where are the egress rules of the bastion?"),
    ("src/pricing/surcharges/fuel_index.py", "Which file has the fuel index surcharge?"),
    ("docs/adr/0031-event-sourcing.md", "Which ADR is about event sourcing?"),
    ("web/src/components/TrackingTimeline.vue", "In which component is the tracking timeline?"),
    ("scripts/oneoff/2025-11-repair_manifests.sh", "What was the one-off script repairing manifests?"),
    ("migrations/0147_add_hazmat_class.sql", "Which migration adds the hazmat classes?"),
    ("packages/ui-kit/stories/DensityToggle.stories.tsx", "Where is the story of the density toggle?"),
    ("config/environments/perf-lab.yaml", "What configuration does the perf lab environment have?"),
    ("tests/contract/test_carrier_webhooks.py", "Where are the contract tests of carrier webhooks?"),
    ("vendor/barcode/src/code128_encoder.c", "Where does the encoder for Code128 barcodes live?"),
    ("ops/runbooks/kafka_partition_reassignment.md", "Which runbook covers reassigning Kafka partitions?"),
    ("assets/fonts/InterVariable-cyrillic.woff2", "Which font asset has Cyrillic?"),
)  # fmt: skip

IDENTIFIERS = (
    ("ERR_MANIFEST_4092: two manifests claim pallet P-77120", "What does ERR_MANIFEST_4092 say?"),
    ("commit 9f3c2ab1 Drop the legacy rounding of customs duties", "Which commit dropped legacy rounding for customs duty?"),
    ("ticket OPS-5518 is about the forklift scanner losing its pairing", "Which ticket is it where forklift scanners lose their pairing?"),
    ("feature branch kb/lazy-tariff-tables is ready for review", "Which branch for lazy tariff tables is ready for reviewing?"),
    ("the metric depot_queue_depth_p95 feeds the capacity alert", "Which metric feeds the capacity alerts?"),
    ("computeVolumetricWeight divides by 5000 for air freight", "By what does computeVolumetricWeight divide for air freight?"),
    ("header X-Trace-Parent is stripped by the edge proxy", "Which header does the edge proxy strip?"),
    ("environment variable COURIER_SANDBOX_TOKEN must be set for the smoke test", "Which environment variable must be set for smoke tests?"),
    ("docker image registry.example/tiler:2.14.3-slim has the fixed glibc", "Which image of the tiler has the fixed glibc?"),
    ("serial number of the test scale: KX-88-20417-B", "What is the serial number of the test scale?"),
    ("the cookie is named __Host-zl_session since the last audit", "How is the cookie named since the audit?"),
    ("parse_edi_segment returns None for an unknown qualifier", "What does parse_edi_segment return for unknown qualifiers?"),
)  # fmt: skip

NUMBERS = (
    ("p99 latency of the quote endpoint: 812 ms under 300 users", "What was the p99 latency for quotes under 300 users?"),
    ("coverage: 91.4 % of 28,311 statements", "How high is the coverage of statements?"),
    ("port 9443 serves the admin console", "On which port is the admin console served?"),
    ("batch 2026-W07 had 14,902 rows rejected of 1.2 million", "How many rows were rejected in batch 2026-W07?"),
    ("the invoice 2025/00871 came to 4,318.55 EUR", "What did invoice 2025/00871 come to?"),
    ("disk usage of /var/lib/tiles grew by 38 GB in a week", "By how much did disk usage grow for tiles?"),
    ("the median dwell at depot 17 is 23 minutes", "What is the median dwelling time at depot 17?"),
    ("build 5521 took 9 min 42 s, of which 6 min were linking", "How long did build 5521 take?"),
    ("the tariff changes on 1 July 2026 from 0.42 to 0.47 per kilometre", "How does the tariff per kilometre change in July?"),
    ("throughput peaked at 6,240 parcels an hour on conveyor B", "At what did throughput peak on the conveyor?"),
    ("IP 10.44.8.19 belongs to the weighbridge controller", "Which IP does the weighbridge controller have?"),
    ("the truck's mileage was 184,220 km at the last inspection", "What mileage had the truck when last inspected?"),
)  # fmt: skip

LANGUAGES = (
    ("生产数据库的只读密码保存在保险柜 7 号抽屉里。", "只读密码保存在哪里？"),
    ("我们决定下周三上午十点发布新版本，由李娜负责。", "新版本什么时候发布？"),
    ("仓库的温度传感器每隔十五分钟上报一次数据。", "温度传感器多久上报一次？"),
    ("配送の締め切りは毎日午後四時で、祝日は休みです。", "配送の締め切りは何時ですか？"),
    ("新しいサーバーの名前は「月見草」に決まりました。", "サーバーの名前は何になりましたか？"),
    ("결제 서비스의 비상 연락처는 김민수 팀장입니다.", "결제 서비스 비상 연락처가 누구지?"),
    ("Die Zugangskarten für das Lager in Bremen verwaltet Frau Petersen.", "Wer verwaltet die Zugangskarte des Lagers?"),
    ("Der Prüfbericht der Waage liegt im grünen Ordner neben dem Fenster.", "Wo liegen die Prüfberichte der Waagen?"),
    ("Le contrat avec le transporteur Bellerive expire le 30 septembre.", "Quand expirent les contrats du transporteur Bellerive ?"),
    ("La contraseña del escáner portátil se cambia cada primer lunes del mes.", "¿Cuándo se cambian las contraseñas de los escáneres portátiles?"),
    ("Ключ от серверной комнаты хранится у дежурного инженера.", "У кого хранятся ключи от серверной?"),
    ("Depoya giriş için yeşil kart gerekiyor, kartları Aylin dağıtıyor.", "Depoya giriş için hangi kart gerekir?"),
)  # fmt: skip

FACTS = {
    "chat": CHAT,
    "decision": DECISION,
    "log": LOG,
    "json": JSON_FACTS,
    "code": CODE,
    "path": PATHS,
    "identifier": IDENTIFIERS,
    "number": NUMBERS,
    "language": LANGUAGES,
}
