BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('0001');
CREATE TABLE contents (
	sha256 TEXT NOT NULL, 
	data BLOB, 
	CONSTRAINT pk_contents PRIMARY KEY (sha256)
);
INSERT INTO "contents" VALUES('aa',X'785E4BAA2C492D0600066C0228');
CREATE TABLE decisions (
	id INTEGER NOT NULL, 
	assignment TEXT NOT NULL, 
	student TEXT NOT NULL, 
	exercise TEXT NOT NULL, 
	kind TEXT NOT NULL, 
	points DOUBLE, 
	who TEXT NOT NULL, 
	why TEXT NOT NULL, 
	decided DATETIME NOT NULL, 
	CONSTRAINT pk_decisions PRIMARY KEY (id)
);
INSERT INTO "decisions" VALUES(1,'qkv','ada','one','override',2.0,'teacher','why','2026-05-01 10:00:00.000000');
CREATE TABLE environments (
	digest TEXT NOT NULL, 
	description TEXT NOT NULL, 
	CONSTRAINT pk_environments PRIMARY KEY (digest)
);
INSERT INTO "environments" VALUES('e','{"numpy": "2"}');
CREATE TABLE executions (
	id INTEGER NOT NULL, 
	assignment TEXT NOT NULL, 
	sha256 TEXT NOT NULL, 
	environment TEXT NOT NULL, 
	exercise TEXT NOT NULL, 
	data BLOB NOT NULL, 
	cpu_seconds DOUBLE NOT NULL, 
	executed DATETIME NOT NULL, 
	CONSTRAINT pk_executions PRIMARY KEY (id), 
	CONSTRAINT fk_executions_environment FOREIGN KEY(environment) REFERENCES environments (digest), 
	CONSTRAINT fk_executions_sha256 FOREIGN KEY(sha256) REFERENCES contents (sha256), 
	CONSTRAINT uq_executions_assignment_sha256_environment_exercise UNIQUE (assignment, sha256, environment, exercise)
);
INSERT INTO "executions" VALUES(1,'qkv','aa','e','',X'7061636B6564',0.5,'2026-11-30 00:15:04.783912');
CREATE TABLE exercise_results (
	grading INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	exercise TEXT NOT NULL, 
	status TEXT NOT NULL, 
	written_points DOUBLE NOT NULL, 
	CONSTRAINT pk_exercise_results PRIMARY KEY (grading, position), 
	CONSTRAINT fk_exercise_results_grading FOREIGN KEY(grading) REFERENCES gradings (id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
INSERT INTO "exercise_results" VALUES(1,0,'one','ok',1.0);
CREATE TABLE gradings (
	id INTEGER NOT NULL, 
	assignment TEXT NOT NULL, 
	sha256 TEXT NOT NULL, 
	environment TEXT NOT NULL, 
	marking TEXT NOT NULL, 
	status TEXT NOT NULL, 
	reason TEXT, 
	notes TEXT NOT NULL, 
	graded DATETIME NOT NULL, 
	chosen BIGINT NOT NULL, 
	CONSTRAINT pk_gradings PRIMARY KEY (id), 
	CONSTRAINT fk_gradings_environment FOREIGN KEY(environment) REFERENCES environments (digest), 
	CONSTRAINT fk_gradings_marking FOREIGN KEY(marking) REFERENCES markings (digest), 
	CONSTRAINT fk_gradings_sha256 FOREIGN KEY(sha256) REFERENCES contents (sha256), 
	CONSTRAINT uq_gradings_assignment_sha256_environment_marking UNIQUE (assignment, sha256, environment, marking)
);
INSERT INTO "gradings" VALUES(1,'qkv','aa','e','m','graded',NULL,'["note"]','2026-11-30 00:15:04.783912',1);
CREATE TABLE holder (
	id INTEGER NOT NULL, 
	description TEXT NOT NULL, 
	CONSTRAINT pk_holder PRIMARY KEY (id)
);
INSERT INTO "holder" VALUES(1,'{"host": "vm", "pid": 23780, "purpose": "a run", "since": "2026-11-30T00:15:04+00:00", "user": "root"}');
CREATE TABLE markings (
	digest TEXT NOT NULL, 
	description TEXT NOT NULL, 
	CONSTRAINT pk_markings PRIMARY KEY (digest)
);
INSERT INTO "markings" VALUES('m','{}');
CREATE TABLE marks (
	grading INTEGER NOT NULL, 
	position INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	exercise TEXT NOT NULL, 
	score DOUBLE NOT NULL, 
	max_score DOUBLE NOT NULL, 
	outcome TEXT NOT NULL, 
	message TEXT NOT NULL, 
	hint TEXT NOT NULL, 
	detail TEXT NOT NULL, 
	explanations TEXT NOT NULL, 
	notes TEXT NOT NULL, 
	visible BOOLEAN NOT NULL, 
	CONSTRAINT pk_marks PRIMARY KEY (grading, position), 
	CONSTRAINT fk_marks_grading FOREIGN KEY(grading) REFERENCES gradings (id) ON DELETE CASCADE
)
 WITHOUT ROWID

;
INSERT INTO "marks" VALUES(1,0,'test_a','one',1.5,1.5,'passed','','','','[]','[]',0);
INSERT INTO "marks" VALUES(1,1,'test_b','one',0.0,1.5,'failed','message','hint','detail','["axis"]','["note"]',0);
CREATE TABLE submissions (
	id INTEGER NOT NULL, 
	assignment TEXT NOT NULL, 
	student TEXT NOT NULL, 
	sha256 TEXT NOT NULL, 
	path TEXT NOT NULL, 
	attempt INTEGER NOT NULL, 
	received DATETIME, 
	late BOOLEAN, 
	lms_id TEXT NOT NULL, 
	notes TEXT NOT NULL, 
	recorded DATETIME NOT NULL, 
	current BOOLEAN NOT NULL, 
	forgotten BOOLEAN NOT NULL, 
	CONSTRAINT pk_submissions PRIMARY KEY (id), 
	CONSTRAINT fk_submissions_sha256 FOREIGN KEY(sha256) REFERENCES contents (sha256), 
	CONSTRAINT uq_submissions_assignment_student_sha256 UNIQUE (assignment, student, sha256)
);
INSERT INTO "submissions" VALUES(1,'qkv','ada','aa','ada.ipynb',1,'2026-05-01 10:00:00.000000',0,'4711','["a note"]','2026-11-30 00:15:04.761749',1,0);
CREATE INDEX ix_decisions_assignment ON decisions (assignment);
CREATE INDEX ix_decisions_student ON decisions (student);
CREATE INDEX ix_executions_sha256 ON executions (sha256);
CREATE INDEX ix_gradings_sha256 ON gradings (sha256);
CREATE INDEX ix_submissions_sha256 ON submissions (sha256);
CREATE INDEX ix_submissions_student ON submissions (student);
COMMIT;
