// The bugs that `pnpm mutants` plants: patches of shipped sources, and the test files of which at least one must then fail. The text
// that a patch replaces must occur exactly once in its file; a repository test checks this.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const STORE = 'packages/store/src'
const REPLAYS = 'qa/src/e2e/replay.slow.test.ts'
const VECTORS = 'qa/src/vectors/vectors.test.ts'
const FUZZ = 'qa/src/fuzz/fuzz.test.ts'
const SOURCES = 'qa/src/repo.test.ts'
const INTAKE_TESTS = 'packages/delivery/src/inbox/intake.test.ts'
const INBOX_TESTS = 'packages/delivery/src/inbox/inbox-worker.test.ts'
const OUTBOX_TESTS = 'packages/delivery/src/outbox/outbox-worker.test.ts'
const LANE_QUEUE = 'packages/kit/src/queue/lane-queue.ts'
const LANES = 'packages/kit/src/queue/lane-queue.test.ts'
const STORE_RULES = `${STORE}/conformance.test.ts`
const SUMMARIES = 'packages/agent/src/compaction/summarize.test.ts'
const SOP = 'packages/sop/src'
const APPROVALS = 'packages/approvals/src'
const TOOL_STEP = `${SOP}/run/tool-step.test.ts`
const WAITING_RUNS = `${SOP}/run/waiting-runs.test.ts`
const ENGINE = `${SOP}/run/engine.test.ts`
const CHAT_REPLIES = `${APPROVALS}/chat-replies.test.ts`
const HTTP = 'packages/http/src'
/** Code of a patch: a text that is new each time the store is opened, so that keys made with it do not survive a restart. */
const UNTIL_RESTART = '(db.mutant ??= String(Math.random()))'

const bug = (name, file, find, replace, tests) => ({ name, patches: [{ file, find, replace }], tests })

const signatures = [
  bug(
    'signature: computed over re-serialized JSON (chatapp)',
    'packages/sdk/src/webhook/webhook-proof.ts',
    '        return request.body\n',
    '        return JSON.stringify(JSON.parse(textOf(request.body)))\n',
    [VECTORS, 'packages/channel-chatapp/src/webhook.test.ts'],
  ),
  bug(
    'signature: any time is accepted (workchat)',
    'packages/channel-workchat/src/webhook.ts',
    '  if (!isTimely(time, raw)) throw',
    '  if (time === nonce) throw',
    [VECTORS, 'packages/channel-workchat/src/webhook.test.ts'],
  ),
  bug(
    'signature: an encrypted event needs none (workchat)',
    'packages/channel-workchat/src/webhook.ts',
    'envelope.type === CHALLENGE && equalTexts(',
    'equalTexts(',
    [VECTORS, 'packages/channel-workchat/src/webhook.test.ts'],
  ),
  bug(
    'ack: a frame is acknowledged before its message is durable (workchat)',
    'packages/kit/src/queue/missed-first.ts',
    '    await durable\n',
    '    void durable.catch(() => undefined)\n',
    ['packages/channel-workchat/src/connection.test.ts'],
  ),
  bug(
    'signature: computed over text instead of bytes (roomchat)',
    'packages/channel-roomchat/src/webhook.ts',
    'isSigned(secret, random.value, body,',
    'isSigned(secret, random.value, Buffer.from(body).toString(),',
    ['packages/channel-roomchat/src/conformance.test.ts'],
  ),
  bug(
    'signature: a timestamp in the future is accepted (textrelay)',
    'packages/sdk/src/values/fresh.ts',
    'Math.abs(nowMs / 1000 - timestampSecs)',
    'nowMs / 1000 - timestampSecs',
    [VECTORS, FUZZ],
  ),
  bug(
    'signature: the timestamp is not checked (textrelay)',
    'packages/sdk/src/webhook/webhook-proof.ts',
    'if (time !== undefined && !isTimely(',
    "if (time === '' && !isTimely(",
    [FUZZ, REPLAYS],
  ),
  bug(
    'signature: a secret is compared with ===',
    'packages/channel-bizchat/src/webhook.ts',
    'equalTexts(token, secret)',
    'token === secret',
    [SOURCES],
  ),
  bug(
    'signature: a signature is compared with ===',
    'packages/sdk/src/values/hmac.ts',
    "return equalDigests(Buffer.from(wanted), Buffer.from(encoding === 'hex' ? given.toLowerCase() : given))",
    "return wanted === (encoding === 'hex' ? given.toLowerCase() : given)",
    [SOURCES],
  ),
  bug(
    'signature: digests are compared byte by byte',
    'packages/sdk/src/values/hmac.ts',
    'a.length === b.length && crypto().timingSafeEqual(a, b)',
    'Buffer.compare(a, b) === 0',
    [SOURCES],
  ),
  bug(
    'signature: several base64 forms of one signature are accepted',
    'packages/sdk/src/values/hmac.ts',
    "Buffer.from(encoding === 'hex' ? given.toLowerCase() : given))",
    "Buffer.from(encoding === 'hex' ? given.toLowerCase() : Buffer.from(given, 'base64').toString('base64')))",
    [FUZZ],
  ),
  bug(
    'signature: a trigger is fired by a request that another trigger of its path verifies',
    'packages/sop/src/definition/trigger-index.ts',
    "(trigger.type !== 'webhook' || keys.has(authKey(trigger.auth))) &&",
    '',
    ['packages/sop/src/definition/trigger-auth.test.ts'],
  ),
  bug(
    'signature: the audience of a push token is not checked (mailpush)',
    'packages/channel-mailpush/src/push-token.ts',
    '        audience,\n',
    '',
    [VECTORS, FUZZ],
  ),
]

const intake = [
  bug(
    'intake: a webhook is answered before its message is durable',
    'packages/http/src/webhooks/webhook-receiver.ts',
    'watch.ended(verdictOf(await this.#keep(raw, watch)))',
    "void this.#keep(raw, watch)\n      watch.ended('kept')",
    ['packages/http/src/routes/webhooks.test.ts'],
  ),
  bug(
    'store: a write resolves before its commit',
    `${STORE}/connection/group-commit.ts`,
    'return runInOrder(units)',
    'for (const { resolve } of units) resolve(undefined)\n        return runInOrder(units)',
    [`${STORE}/connection/group-commit.test.ts`, `${STORE}/open-store.test.ts`],
  ),
  bug(
    'store: an earlier holder of a lease still writes',
    `${STORE}/connection/group-commit.ts`,
    'return fence && !isHeld(fence) ? NOT_RUN : run()',
    'return run()',
    [STORE_RULES],
  ),
  bug(
    'store: a lease recovers the work of all shards',
    `${STORE}/tables/recovery.ts`,
    "return isAll ? '' :",
    "return isAll || shards ? '' :",
    [STORE_RULES],
  ),
  bug(
    'intake: message ids are remembered only in memory',
    `${STORE}/tables/keep-arrival.ts`,
    'message: { account, id } }) => rowKey(joinTexts(channel, account, id))',
    `message: { account, id } }) => rowKey(joinTexts(channel, account, id + ${UNTIL_RESTART}))`,
    [REPLAYS, INTAKE_TESTS],
  ),
  bug(
    'intake: a message id is remembered without its account',
    `${STORE}/tables/keep-arrival.ts`,
    'message: { account, id } }) => rowKey(joinTexts(channel, account, id))',
    'message: { account, id } }) => rowKey(joinTexts(channel, id))',
    [STORE_RULES, INTAKE_TESTS],
  ),
  bug(
    'intake: a nonce is remembered only in memory (roomchat)',
    `${STORE}/tables/keep-arrival.ts`,
    'joinTexts(channel, nonce.value)',
    `joinTexts(channel, nonce.value, ${UNTIL_RESTART})`,
    [REPLAYS],
  ),
  bug(
    'intake: a nonce is forgotten at once (roomchat)',
    'packages/delivery/src/inbox/intake.ts',
    'untilMs: receivedAtMs + NONCE_MS',
    'untilMs: receivedAtMs',
    [REPLAYS],
  ),
  bug(
    'intake: the limit of an account is not enforced',
    'packages/delivery/src/inbox/intake.ts',
    'this.#exceeds(messages.filter(needsTurn), max_pending) ||',
    'this.#exceeds(messages.filter(isNoReply), max_pending + 1e9) ||',
    [INTAKE_TESTS],
  ),
  bug(
    'intake: an empty allowlist allows every sender',
    'packages/sdk/src/channel/allow.ts',
    "if (list.includes('*'))",
    "if (list.length === 0 || list.includes('*'))",
    ['packages/delivery/src/inbox/allowed-senders.test.ts'],
  ),
  bug(
    'intake: a message of a sender who is not allowed is stored',
    'packages/delivery/src/inbox/intake.ts',
    'isUnsignedDeletion(message) || this.#senders.admit(channel, message.sender))',
    'isUnsignedDeletion(message) || this.#senders.admit(channel, message.sender) || true)',
    [INTAKE_TESTS],
  ),
  bug(
    'intake: the cursor moves before the mails are stored (mailpush)',
    'packages/channel-mailpush/src/catch-up.ts',
    '    for (const id of ids) if (!progress.isDelivered(id))',
    '    await progress.moveTo(end, atMs)\n    for (const id of ids) if (!progress.isDelivered(id))',
    ['packages/channel-mailpush/src/catch-up.test.ts'],
  ),
  bug(
    'intake: the mail of the first push is lost (mailpush)',
    'packages/channel-mailpush/src/connection.ts',
    'begin && begin.historyId < newest',
    'begin && begin.historyId > newest',
    ['packages/channel-mailpush/src/catch-up.test.ts'],
  ),
  bug(
    'intake: a forged mail passes for its sender (email)',
    'packages/channel-email/src/identity.ts',
    '(isVerified ? address :',
    '(isVerified || address ? address :',
    ['packages/channel-email/src/connection.test.ts'],
  ),
  bug(
    'intake: the position moves before the mail is stored (email)',
    'packages/channel-email/src/read-mailbox.ts',
    '      if (!(await takeOne(imap, { uidValidity, uid }, reading))) return',
    '      last = uid\n      await save(cursor.atMs)\n      if (!(await takeOne(imap, { uidValidity, uid }, reading))) return',
    ['packages/channel-email/src/connection.test.ts'],
  ),
]

const turns = [
  bug(
    'turns: two messages of one session run at once',
    LANE_QUEUE,
    'enter(job: Job): QueuedJob | undefined {',
    'enter(queued: Job): QueuedJob | undefined {\n    const job = { ...queued, lane: String(Math.random()) }',
    [LANES, INBOX_TESTS],
  ),
  bug(
    'turns: a message that waits for its next attempt holds a permit',
    LANE_QUEUE,
    'const outcome = await outcomeOf(job, attempt)\n',
    "const outcome = await outcomeOf(job, attempt)\n    if (outcome !== 'done') await this.#clock.sleep(outcome.retryAtMs - this.#clock.nowMs())\n",
    [LANES],
  ),
  bug(
    'turns: a turn is not notified that a newer message supersedes it',
    LANE_QUEUE,
    'if (lane.head && lane.supersedes(lane.head.job)) lane.head.attempt?.supersede()',
    '',
    [LANES, INBOX_TESTS],
  ),
  bug(
    'turns: an attempt is not counted when it starts',
    `${STORE}/tables/message-attempt.ts`,
    'attempts = attempts + NOT',
    'attempts = attempts + 0 * NOT',
    [STORE_RULES, INBOX_TESTS],
  ),
  {
    name: 'replies: a reply is queued after the commit that ends its turn',
    patches: [
      {
        file: 'packages/delivery/src/inbox/message-turns.ts',
        find: 'const { replies } = await turns.agent.run({',
        replace: 'let later = []\n    await turns.agent.run({',
      },
      {
        file: 'packages/delivery/src/inbox/message-turns.ts',
        find: 'reply: (said, files, span) =>\n          repliesOf(said, files, {',
        replace: 'reply: (said, files, span) =>\n          ((later = repliesOf(said, files, {',
      },
      {
        file: 'packages/delivery/src/inbox/message-turns.ts',
        find: 'trace: telemetry.traces() ? formatTraceContext(span) : undefined,\n          }),',
        replace: 'trace: telemetry.traces() ? formatTraceContext(span) : undefined,\n          })), []),',
      },
      {
        file: 'packages/delivery/src/inbox/message-turns.ts',
        find: '    const address = { channel: channel.name, account, to: message.to }\n',
        replace:
          '    const replies = await owned.outbox.add(later)\n    const address = { channel: channel.name, account, to: message.to }\n',
      },
    ],
    tests: [OUTBOX_TESTS],
  },
  bug(
    'replies: a replayed message has another id',
    `${STORE}/tables/inbox.ts`,
    "UPDATE inbox SET state = 'pending', attempts = 0,",
    "UPDATE inbox SET message_json = json_set(message_json, '$.id', hex(randomblob(8))), state = 'pending', attempts = 0,",
    [STORE_RULES],
  ),
]

const replies = [
  bug(
    'replies: an unrecorded failed attempt leaves its reply in state sending',
    'packages/delivery/src/outbox/outbox-worker.ts',
    'await this.#record(number, () => owned.outbox.retry(number, { error: reason, atMs, uncounted: !isCounted, repeats }))',
    'await owned.outbox.retry(number, { error: reason, atMs, uncounted: !isCounted, repeats })',
    [OUTBOX_TESTS],
  ),
  {
    name: 'replies: a sent reply whose outcome was not recorded is sent again',
    patches: [
      {
        file: 'packages/delivery/src/outbox/outbox-worker.ts',
        find: 'await this.#record(number, () => owned.outbox.sent(number, { providerId: id, atMs: clock.nowMs() }))',
        replace:
          "try {\n    await owned.outbox.sent(number, { providerId: id, atMs: clock.nowMs() })\n  } catch {\n    return this.#failed({ owned, started, channel, error: new AppError('unavailable', 'not recorded'), startedMs, ended })\n  }",
      },
    ],
    tests: [OUTBOX_TESTS],
  },
  bug(
    'replies: an ambiguous reply is sent again',
    'packages/delivery/src/outbox/outbox-worker.ts',
    '(isSafe || started.asks === true)',
    'true',
    [OUTBOX_TESTS],
  ),
  bug(
    'replies: an uncertain prompt of an open question is not sent again',
    'packages/delivery/src/outbox/outbox-worker.ts',
    '(isSafe || started.asks === true)',
    'isSafe',
    [OUTBOX_TESTS],
  ),
  bug(
    'replies: a reply is ambiguous although no byte was written',
    'packages/kit/src/platform/call-provider.ts',
    "if (progress() === 'connecting') {",
    "if (progress() === '') {",
    ['packages/kit/src/platform/call-provider.test.ts'],
  ),
  bug(
    'replies: an outage of the platform counts as an attempt',
    'packages/delivery/src/outbox/outbox-worker.ts',
    'isRepeatable && (isCounted ? attempts < max_attempts : ageMs < max_age_hours * HOUR_MS)',
    'isRepeatable && attempts < max_attempts',
    [OUTBOX_TESTS],
  ),
  bug(
    'replies: file markers are searched in quadratic time',
    'packages/sdk/src/channel/reply.ts',
    '([^[\\]\\n]{1,1000})',
    '([^\\]\\n]{1,20000})',
    ['qa/src/linear-patterns.slow.test.ts'],
  ),
  {
    name: 'replies: an interrupted attempt is sent again after a crash',
    patches: [
      { file: `${STORE}/tables/recovery.ts`, find: "SET state = 'ambiguous', error", replace: "SET state = 'queued', error" },
      { file: `${STORE}/tables/recovery.ts`, find: "', ended_at = ?", replace: "', next_at = ?" },
    ],
    tests: [STORE_RULES, OUTBOX_TESTS],
  },
  bug(
    'replies: a replayed reply has another client id',
    `${STORE}/tables/outbox.ts`,
    "UPDATE outbox SET state = 'queued', attempts = 0, error = NULL, ended_at = NULL, replayed_at = ?\n",
    "UPDATE outbox SET client_id = hex(randomblob(8)), state = 'queued', attempts = 0, error = NULL, ended_at = NULL, replayed_at = ?\n",
    [STORE_RULES],
  ),
  bug(
    'replies: a long reply is split inside a character',
    'packages/kit/src/text/split-text-break.ts',
    'const whole = startOf(last) || last',
    'const whole = last',
    ['packages/kit/src/text/split-text.test.ts'],
  ),
  bug('replies: a split reply leaves a code fence open', 'packages/kit/src/text/split-text.ts', "body + (cut?.closing ?? '')", 'body', [
    'packages/kit/src/text/split-text.test.ts',
  ]),
]

const procedures = [
  bug(
    'procedure: a tool with effects runs before its start is stored',
    `${SOP}/run/tool-step.ts`,
    "if (risk !== 'read') await runs",
    "if (risk === 'never') await runs",
    [TOOL_STEP],
  ),
  {
    name: 'procedure: an interrupted call is repeated without approval',
    patches: [
      { file: `${SOP}/run/tool-step.ts`, find: '  if (run.attempt) {', replace: '  if (!run) {' },
      {
        file: `${SOP}/run/tool-step.ts`,
        find: "if (risk !== 'read') await runs",
        replace: "if (risk !== 'read' && !run.attempt) await runs",
      },
    ],
    tests: [TOOL_STEP],
  },
  bug('procedure: two calls of a step have the same call id', `${SOP}/run/tool-step.ts`, 'callId: `call-', 'callId: `same` || `', [
    TOOL_STEP,
  ]),
  bug(
    'procedure: a cancellation waits for the decision of a person',
    `${SOP}/run/tool-step.ts`,
    '  const startedAtMs = clock.nowMs()\n',
    '  const startedAtMs = clock.nowMs()\n  execution.isToolRunning = true\n',
    [TOOL_STEP],
  ),
  bug(
    'procedure: a step whose turn may have acted is retried without approval',
    `${SOP}/run/agent-step.ts`,
    'step?.tools?.length !== 0 && (model !== null || starts > 1)',
    'false && step && model && starts',
    [ENGINE],
  ),
  bug(
    'procedure: a step has another turn after a restart',
    `${SOP}/run/agent-step.ts`,
    'const turnId = run.attempt?.turnId ?? ports.newId()',
    'const turnId = ports.newId()',
    [ENGINE],
  ),
  bug(
    'procedure: runs do not resume after a restart',
    `${SOP}/run/engine.ts`,
    '      this.#activeRuns.wake(run)\n      count++',
    '      count++',
    [ENGINE],
  ),
  bug('procedure: waiting runs do not begin after a restart', `${SOP}/run/engine.ts`, '    this.#waitingRuns.open()\n', '', [WAITING_RUNS]),
  bug('procedure: a waiting run is not looked for when a slot is free', `${SOP}/run/run-progress.ts`, '  changed()\n', '', [WAITING_RUNS]),
  bug(
    'procedure: a waiting run begins beyond the limits',
    `${STORE}/cold/start-runs.ts`,
    'if (takenLimit(limits, load) !== undefined) return { inMs: null }',
    '',
    [STORE_RULES],
  ),
  bug(
    'procedure: a waiting run begins twice',
    `${STORE}/cold/start-runs.ts`,
    "if (!(yield* first(REPLACE, written, null, after.status, before.id, read))) return 'changed'",
    'yield* first(REPLACE, written, null, after.status, before.id, read)',
    [STORE_RULES],
  ),
  bug(
    'procedure: an event overtakes the runs that wait',
    'packages/sdk/src/store/sop-limits.ts',
    "(waiting > 0 ? 'earlier runs of this procedure wait' : undefined)",
    'undefined',
    [STORE_RULES],
  ),
  bug(
    'procedure: an event without room is not refused',
    `${STORE}/cold/waiting-starts.ts`,
    'if (full?.status !==',
    'if (full || full?.status !==',
    [STORE_RULES],
  ),
  bug(
    'procedure: two concurrent changes of a run both succeed',
    `${STORE}/cold/start-runs.ts`,
    ' AND run_json = $5 AND ended_at IS NULL RETURNING',
    ' AND $5 IS NOT NULL RETURNING',
    [STORE_RULES],
  ),
  bug(
    'procedure: a repeated event starts its runs again',
    `${STORE}/cold/start-runs.ts`,
    'const known = key && (yield* first',
    'const known = key && !key && (yield* first',
    [STORE_RULES],
  ),
  bug(
    'procedure: an event is recorded after the commit that starts its runs',
    `${STORE}/cold/start-runs.ts`,
    'if (newKey !== null || idempotency !== null) yield* all(REMEMBER',
    'if (newKey !== null) yield* all(REMEMBER',
    [STORE_RULES],
  ),
  bug(
    'procedure: an audit record does not include the hash of the previous one',
    `${STORE}/cold/audit-log.ts`,
    '    previous = hash\n',
    '',
    [STORE_RULES],
  ),
  bug(
    'procedure: a checkpoint does not wait',
    `${SOP}/run/gates.ts`,
    "if (step.kind === 'checkpoint') return 'checkpoint'",
    "if (step.kind === 'checkpoint' && mode !== 'deterministic') return 'checkpoint'",
    [`${SOP}/run/gates.test.ts`, TOOL_STEP],
  ),
  bug('procedure: a scheduled start has no idempotency key', 'packages/daemon/src/procedures.ts', 'key: `cron ', 'lost: `cron ', [
    'packages/daemon/src/procedures.test.ts',
  ]),
]

const approvals = [
  bug(
    'approval: two concurrent decisions both succeed',
    `${STORE}/cold/approvals.ts`,
    "step_id = $7 AND state = 'pending' RETURNING",
    'step_id = $7 RETURNING',
    [STORE_RULES, CHAT_REPLIES],
  ),
  {
    name: 'approval: a time-out approves',
    patches: [
      {
        file: `${APPROVALS}/registry.ts`,
        find: "decide(key, { state: 'expired', by: 'timeout' })",
        replace: "decide(key, { state: 'approved', by: 'timeout' })",
      },
      {
        file: `${STORE}/cold/approvals.ts`,
        find: "if (state === 'approved' || state === 'rejected') yield",
        replace: "if (by !== 'timeout') yield",
      },
    ],
    tests: [CHAT_REPLIES, `${APPROVALS}/registry.test.ts`],
  },
  bug(
    'approval: a late reply counts',
    `${STORE}/cold/approvals.ts`,
    "if (state === 'approved' || state === 'rejected') yield",
    "if (state === 'rejected') yield",
    [STORE_RULES],
  ),
  bug(
    'approval: an undispatched decision is lost in a restart',
    `${APPROVALS}/registry.ts`,
    '    else {\n      this.#own.set(approval, owned)\n      this.#decided(approval)\n    }\n  }',
    '  }',
    [CHAT_REPLIES],
  ),
  bug(
    'approval: a pending request is lost in a restart',
    `${APPROVALS}/registry.ts`,
    "if (approval.state === 'pending') this.#keep(approval, owned)\n    else",
    'if (approval.state !== "pending")',
    [CHAT_REPLIES],
  ),
  bug(
    'approval: a decision is confirmed before it is dispatched',
    `${APPROVALS}/dispatch.ts`,
    '        await handler(approval)\n        await acknowledged(approval)\n',
    '        await acknowledged(approval)\n        await handler(approval)\n',
    [CHAT_REPLIES],
  ),
  bug(
    'approval: a decision is confirmed at each dispatch',
    `${STORE}/cold/approvals.ts`,
    " AND state <> 'pending' AND settled_at IS NULL RETURNING",
    " AND state <> 'pending' RETURNING",
    [STORE_RULES],
  ),
  bug('approval: the decision is not reported', `${APPROVALS}/registry.ts`, '    emitResolved(bus, approval)\n', '', [
    CHAT_REPLIES,
    `${APPROVALS}/registry.test.ts`,
    'packages/http/src/routes/approvals.test.ts',
  ]),
  bug(
    'approval: a tool runs without a decision',
    `${APPROVALS}/tool-approver.ts`,
    "decided.state === 'approved' && decided.by !== null",
    "decided.state !== 'rejected' && decided.by !== null",
    [`${APPROVALS}/tool-approver.test.ts`],
  ),
  bug(
    'approval: a tool call of a turn is not written ahead',
    'packages/agent/src/tools/tool-round.ts',
    'onBegin: writeAhead }',
    'onBegin: undefined }',
    ['packages/agent/src/agent-write-ahead.test.ts'],
  ),
  bug(
    'approval: a reconnected subscriber misses pending requests',
    'packages/runtime/src/events/event-bus.ts',
    'const events = this.#from(after + 1)',
    'const events = this.#from(this.#seq + 1)',
    ['packages/runtime/src/events/event-bus.test.ts', 'packages/http/src/streams/sse.test.ts'],
  ),
  bug('approval: the client of a request is lost in a restart', `${STORE}/cold/approval-row.ts`, 'asked.person ?? null', 'null', [
    CHAT_REPLIES,
  ]),
  bug(
    'approval: the decision on one call lets another call run',
    `${APPROVALS}/tool-approver.ts`,
    'first.approval.callHash === callHash ? first',
    'first ? first',
    [`${APPROVALS}/tool-approver.test.ts`],
  ),
  bug(
    'approval: an answer counts for a call that its person may not decide',
    `${APPROVALS}/tool-approver.ts`,
    'if (stillAsks(found.approval, decider)) return found',
    'if (found) return found',
    [`${APPROVALS}/tool-approver.test.ts`],
  ),
  bug('approval: a stranger decides a call', `${APPROVALS}/may-decide.ts`, "!isAsked || !isAtLeast(standing, 'listed')", '!isAsked', [
    `${APPROVALS}/may-decide.test.ts`,
  ]),
  bug(
    'approval: the source of untrusted text decides',
    `${APPROVALS}/may-decide.ts`,
    'source !== undefined && sources.includes(source)',
    'false',
    [`${APPROVALS}/may-decide.test.ts`],
  ),
  bug(
    'approval: another call runs than was shown',
    'packages/agent/src/tools/approval.ts',
    'return callHash(tool.name, input) === hash ? answer',
    'return hash ? answer',
    ['packages/agent/src/tools/tool-call.test.ts'],
  ),
  bug(
    'approval: the policy is not checked again after a decision',
    'packages/agent/src/tools/tool-call.ts',
    'answer ? this.judge(scope, prepared) : judged',
    'judged',
    ['packages/agent/src/tools/tool-call.test.ts'],
  ),
  bug(
    'approval: waiting for a person counts as an attempt (store)',
    `${STORE}/tables/turns.ts`,
    'isWaiting ? [UNCOUNT_ATTEMPT, UNCOUNT_MESSAGE_ATTEMPT] : [COUNT_ATTEMPT, COUNT_MESSAGE_ATTEMPT]',
    '[COUNT_ATTEMPT, COUNT_MESSAGE_ATTEMPT]',
    [STORE_RULES],
  ),
  bug(
    'approval: a start counts as an attempt while its request is pending',
    `${STORE}/tables/message-attempt.ts`,
    'attempts = attempts + NOT',
    'attempts = attempts + 1 + 0 * NOT',
    [STORE_RULES],
  ),
  bug(
    'approval: waiting for a person counts as an attempt (agent)',
    'packages/agent/src/run/conduct-turn.ts',
    'if (turn.kept) await turn.home.turns.waits',
    'if (!turn.kept) await deps.store.turns.waits',
    ['packages/agent/src/agent-asking.test.ts'],
  ),
  bug(
    'approval: a request stays pending after the end of its turn',
    'packages/daemon/src/withdraw-approvals.ts',
    'if (!(await isWaitedFor(store, approval)))',
    'if (approval === null)',
    ['packages/daemon/src/withdraw-approvals.test.ts'],
  ),
  bug(
    'approval: a client sees and decides the calls of another device',
    `${APPROVALS}/api.ts`,
    'if (owner === caller.owner ||',
    "if (caller.role !== 'operator' ||",
    ['packages/http/src/routes/approvals.test.ts'],
  ),
  bug(
    'events: a client follows the events of another device',
    'packages/runtime/src/events/event-bus.ts',
    '(event.outline ?? event) : undefined',
    '(event.outline ?? event) : event',
    ['packages/http/src/streams/fan-out.test.ts', 'packages/http/src/routes/approvals.test.ts'],
  ),
]

const AUTHORIZATION = [`${HTTP}/auth/auth.test.ts`, `${HTTP}/routes/webhook.test.ts`]
const CHAT = 'packages/http/src/streams/chat'

const access = [
  bug(
    'webhook: a turn with an idempotency key is not stored',
    'packages/agent/src/run/agent.ts',
    'const mustKeep = idempotency !== undefined && !delivery',
    'const mustKeep = false',
    ['packages/agent/src/agent-durability.test.ts'],
  ),
  bug(
    'webhook: a turn with an idempotency key begins before it is stored',
    'packages/agent/src/run/live-turns.ts',
    '      await turn.kept\n',
    '',
    ['packages/agent/src/agent-durability.test.ts'],
  ),
  bug(
    'webhook: a provider is asked before the turn is stored',
    'packages/agent/src/model/call-model.ts',
    'if (provider !== OFFLINE) await turn.keep?.()',
    '',
    ['packages/agent/src/agent-durability.test.ts'],
  ),
  bug(
    'webhook: a tool runs before the turn of the built-in model is stored',
    'packages/agent/src/run/loop.ts',
    '    await turn.keep?.()\n',
    '',
    ['packages/agent/src/agent-durability.test.ts'],
  ),
  bug(
    'devices: a turn starts for a device that was revoked during its request',
    `${HTTP}/middleware/body.ts`,
    '    await checkStillGood(caller, auth)\n',
    '',
    [`${HTTP}/routes/webhook.test.ts`],
  ),
  bug(
    'devices: a waiting message of a revoked device becomes a turn',
    `${CHAT}.ts`,
    'if (allowed !== true && !(await allowed)) return this.#shutOut()',
    'await allowed',
    [`${CHAT}.test.ts`],
  ),
  bug(
    'devices: a client may call routes of operators',
    `${HTTP}/middleware/authenticate.ts`,
    "if (role !== 'operator') throw",
    'if (role === null) throw',
    [`${HTTP}/roles.test.ts`],
  ),
  bug(
    'lockout: a valid token is locked out together with its address',
    `${HTTP}/auth/auth.ts`,
    'const token = bearerToken(headers)\n      if',
    'const token = bearerToken(headers)\n      if (!spared) await checkLockout(lockout, address)\n      if',
    AUTHORIZATION,
  ),
  bug(
    'lockout: a forwarding header counts from any peer',
    'packages/http/src/middleware/client-address.ts',
    'proxies && isTrusted(address, proxies) && forwardedAddress',
    'proxies && forwardedAddress',
    ['packages/http/src/middleware/client-address.test.ts'],
  ),
  bug(
    'bodies: an unfinished body is kept as a list of chunks',
    `${HTTP}/request/body.ts`,
    'const read = new ByteBuffer()',
    'const read = {\n      length: 0,\n      pieces: [],\n      append(piece) {\n        this.pieces.push(piece)\n        this.length += piece.length\n      },\n      clear() {},\n      bytes() {\n        return Buffer.concat(this.pieces)\n      },\n    }',
    [`${HTTP}/request/body.test.ts`],
  ),
  bug(
    'bodies: an unfinished body blocks other requests',
    `${HTTP}/request/body-budget.ts`,
    'if (!victim) throw noRoom()',
    'if (victim || !victim) throw noRoom()',
    [`${HTTP}/request/body-budget.test.ts`],
  ),
  bug(
    'secrets: a log text is truncated before its secrets are masked',
    'packages/runtime/src/log/printable-fields.ts',
    'return PATTERNS.reduce((clean, [pattern, replacement]) => clean.replace(pattern, replacement), cut)',
    'return hide(PATTERNS.reduce((clean, [pattern, replacement]) => clean.replace(pattern, replacement), whole.slice(0, STRING_CHARS_MAX)))',
    ['packages/runtime/src/log/log.test.ts'],
  ),
]

const memory = [
  bug(
    'memory: a search finds memories of another client',
    `${STORE}/cold/memory.ts`,
    'const READABLE = `(memories.owner = $1 OR memories.owner IN',
    'const READABLE = `($1 IS NOT NULL OR memories.owner IN',
    [STORE_RULES],
  ),
  bug(
    'memory: the memories of one client belong to all',
    'packages/tool-memory/src/memory-tools.ts',
    'return owner\n',
    'return SHARED_MEMORIES\n',
    ['packages/tool-memory/src/memory-tools.test.ts'],
  ),
  bug(
    'summaries: a session that was erased meanwhile gets the summary',
    `${STORE}/cold/summaries.ts`,
    'WHERE id = $1 AND message_count = $2',
    'WHERE id = $1',
    [STORE_RULES],
  ),
  {
    name: 'summaries: an older summary replaces a newer one',
    patches: [
      ['WHERE session = number), 0) = $3', 'WHERE session = number), 0) >= $3'],
      ['WHERE session_summaries.up_to = $3', 'WHERE session_summaries.up_to >= $3'],
    ].map(([find, replace]) => ({ file: `${STORE}/cold/summaries.ts`, find, replace })),
    tests: [STORE_RULES],
  },
  bug(
    'summaries: messages are covered that the model did not get',
    'packages/agent/src/compaction/write-summary.ts',
    '    upTo: source.upTo,',
    '    upTo: blocks.at(-1)?.upTo ?? 0,',
    [SUMMARIES],
  ),
  bug(
    'summaries: the summary before is left out',
    'packages/agent/src/compaction/write-summary.ts',
    'previous ? shorten(previous.text, charsMax) :',
    "previous ? '' :",
    [SUMMARIES],
  ),
  bug(
    'summaries: the rest begins with a tool result',
    'packages/agent/src/history/history.ts',
    "if (message?.role !== 'tool') first = at",
    'first = at',
    ['packages/agent/src/history/history.test.ts'],
  ),
  bug(
    'retention: an unfinished turn is deleted',
    `${STORE}/cold/prune.ts`,
    "OLD_TURNS = 'FROM turns WHERE ended_at < $1'",
    "OLD_TURNS = 'FROM turns WHERE coalesce(ended_at, 0) < $1'",
    [STORE_RULES],
  ),
  bug(
    'retention: a waiting or dead reply is deleted to free space',
    `${STORE}/cold/prune.ts`,
    `WHERE ended_at IS NOT NULL AND \${texts.unindexedState} = 'sent'`,
    `WHERE \${texts.unindexedState} <> ''`,
    [STORE_RULES],
  ),
  bug(
    'retention: the body of an unfinished message is deleted to free space',
    `${STORE}/tables/prune.ts`,
    `WHERE state = '\${state}' AND (`,
    `WHERE '\${state}' <> '' AND (`,
    [STORE_RULES],
  ),
  bug(
    'retention: old data is deleted in the first week after an upgrade',
    'packages/runtime/src/retention.ts',
    'store.prune(isHeld ? withoutDeletions(retention) : retention)',
    'store.prune(retention)',
    ['packages/runtime/src/retention.test.ts'],
  ),
  bug(
    'retention: a clock that is set far ahead deletes what is young',
    'packages/runtime/src/retention.ts',
    '(await isAhead(nowMs)) ? withoutAges(configured) : configured',
    'configured',
    ['packages/runtime/src/retention.test.ts'],
  ),
  bug(
    'erasure: an erased conversation is still served from memory',
    `${STORE}/tables/conversation-eraser.ts`,
    '() => cache.delete(id)',
    '() => undefined',
    [STORE_RULES],
  ),
  bug(
    'erasure: erased text stays readable in the write-ahead log',
    `${STORE}/tables/conversation-eraser.ts`,
    'purged: emptyLog(db)',
    'purged: true',
    [`${STORE}/tables/conversation-eraser.test.ts`],
  ),
  bug(
    'storage: a database is upgraded under a running daemon',
    `${STORE}/schema/migrate.ts`,
    'const lock = options.lock?.()',
    'const lock = undefined',
    [`${STORE}/open-data-dir.test.ts`],
  ),
  bug(
    'storage: no copy is made before an upgrade',
    `${STORE}/schema/migrate.ts`,
    'const copy = copyBeforeUpgrade(db,',
    'const copy = String(db,',
    [`${STORE}/schema/migrate.test.ts`],
  ),
  bug(
    'storage: a data directory without its database starts empty',
    `${STORE}/open-data-dir.ts`,
    'if (isNew && !newDatabase && existsSync(keyFile))',
    'if (isNew && newDatabase && existsSync(keyFile))',
    [`${STORE}/open-data-dir.test.ts`],
  ),
]

const SHELL = 'packages/tool-shell/src'
const JAIL = 'packages/sandbox-jail/src/jail-options'

const confinement = [
  bug(
    'procedure: a definition that the agent changed is loaded',
    `${SOP}/library/load-sop.ts`,
    'if (hash !== agreed) return',
    'if (agreed === null) return',
    [`${SOP}/library/load-sops.test.ts`],
  ),
  bug(
    'sandbox: a running turn keeps the sandbox that it began with',
    'packages/runtime/src/features/lifecycle.ts',
    'return this.#applied && this.#replacedGuards.has(built) ? this.#applied.guards : built',
    'return built',
    ['packages/runtime/src/features/lifecycle.test.ts'],
  ),
  bug(
    'agents: a call of an agent is judged by the policy of another one',
    'packages/agent/src/turn/agent-settings.ts',
    'const now = config(agent)',
    'const now = config(MAIN_AGENT)',
    ['packages/agent/src/agents.test.ts'],
  ),
  bug(
    'ownership: a process runs the turns of every shard',
    'packages/agent/src/turn/turn-home.ts',
    'return ownership.of(ownership.ownsAll ? 0 : shardOfTurn(session, id))',
    'return store',
    ['packages/daemon/src/ownership/turns.test.ts'],
  ),
  bug('ownership: a lease is taken up twice', 'packages/ownership/src/held-shards.ts', 'if (taken.has(owned)) return\n', '\n', [
    'packages/ownership/src/ownership.test.ts',
  ]),
  bug(
    'ownership: a draft is edited under a lost lease',
    'packages/delivery/src/outbox/draft.ts',
    'if (!owned.lease.mayAct()) return this.#stopped.abort()\n',
    '\n',
    ['packages/delivery/src/outbox/draft.test.ts'],
  ),
  bug(
    'ownership: a tool of a procedure runs although the lease is lost',
    'packages/sop/src/run/tool-step.ts',
    'if (lease) checkHeld(lease)\n',
    '\n',
    ['packages/sop/src/run/tool-step.test.ts'],
  ),
  bug('idempotency: a key that two processes claimed runs twice', `${STORE}/tables/turns.ts`, "isFreeKey('?9', '?7')", "'TRUE'", [
    STORE_RULES,
  ]),
  bug(
    'idempotency: a turn ends with a key that another process has used',
    `${STORE}/tables/turns.ts`,
    "isFreeKey('?20', '?17')",
    "'TRUE'",
    [`${STORE}/tables/turn-keys.test.ts`],
  ),
  bug(
    'ownership: a reply stays begun when its lease is in doubt',
    'packages/sdk/src/values/lease.ts',
    'if (lease.lost.aborted) throw',
    'throw',
    ['packages/delivery/src/outbox/outbox-worker.test.ts'],
  ),
  bug('ownership: a reply is sent under a lost lease', 'packages/sdk/src/values/lease.ts', 'if (lease.mayAct()) return\n', 'return\n', [
    'packages/daemon/src/ownership/messages.test.ts',
    'packages/sop/src/run/tool-step.test.ts',
  ]),
  bug(
    'ownership: every change reads the work of all shards',
    'packages/ownership/src/homes.ts',
    'return changed === null ||',
    'return true ||',
    ['packages/daemon/src/ownership/messages.test.ts'],
  ),
  bug(
    'ownership: two processes listen on one account',
    'packages/delivery/src/listeners.ts',
    "channelLease(channel.name, channel.notifications?.account || 'main')",
    'channelLease(channel.name, String(Math.random()))',
    ['packages/daemon/src/ownership/messages.test.ts'],
  ),
  bug(
    'ownership: a process drives the runs of every shard',
    'packages/sop/src/run/active-runs.ts',
    'const home = this.homes.of(shardOf(run.id))',
    'const [home] = this.homes',
    ['packages/daemon/src/ownership/procedures.test.ts'],
  ),
  bug(
    'procedures: an event that two processes get starts two runs',
    `${STORE}/cold/start-runs.ts`,
    'const newKey = known ? null : key',
    'const newKey = null',
    ['packages/daemon/src/ownership/procedures.test.ts'],
  ),
  bug(
    'limits: each process counts wrong pairing codes for itself',
    'packages/http/src/middleware/rate-limit.ts',
    "pairing: counters.lockout('pairing', PAIRING_LOCKOUT)",
    'pairing: counters.lockout(String(Math.random()), PAIRING_LOCKOUT)',
    ['packages/http/src/shared-limits.test.ts'],
  ),
  bug(
    'ownership: an answer to the approval of another process is a message',
    'packages/approvals/src/registry.ts',
    'return refreshed ? refreshed.then(() => this.#matcher.match(channel, inbound)) : this.#matcher.match(channel, inbound)',
    'return this.#matcher.match(channel, inbound)',
    ['packages/daemon/src/ownership/messages.test.ts'],
  ),
  bug(
    'agents: a resumed turn belongs to the main agent',
    'packages/agent/src/turn/queued-turn.ts',
    '  session === null ? agent : agentOfSession(session)',
    '  session === null ? agent : MAIN_AGENT',
    ['packages/agent/src/agents.test.ts'],
  ),
  bug(
    'agents: the state of a tool is shared by two agents',
    'packages/agent/src/turn/call-scope.ts',
    'client: agentKey(agent, client) as ClientId,',
    'client,',
    ['packages/agent/src/agents.test.ts'],
  ),
  bug(
    'agents: a reply attaches the file of another agent',
    'packages/delivery/src/outbox/outbox-worker.ts',
    'const all = features.workspace(agent)',
    'const all = features.workspace(MAIN_AGENT)',
    ['packages/delivery/src/inbox/agents.test.ts'],
  ),
  bug(
    'config: a file that the agent can write is applied',
    'packages/runtime/src/workspace/agent-writable.ts',
    'isWithin(inner, root) && (isWithin(root, data) || !isWithin(inner, data))',
    'isWithin(inner, root) && isWithin(root, data)',
    ['packages/runtime/src/workspace/agent-writable.test.ts'],
  ),
  bug(
    'config: a file that lost a section is applied at once',
    'packages/config/src/read/watch-config.ts',
    'if (clock.nowMs() < held.untilMs) continue',
    'if (clock.nowMs() < 0) continue',
    ['packages/config/src/read/watch-config.test.ts'],
  ),
  bug(
    'plugins: a plugin in the workspace is loaded',
    'packages/plugins-wasm/src/check-place.ts',
    'if (!isWithin(folder, root) || (',
    'if (folder !== root || (',
    ['packages/plugins-wasm/src/check-place.test.ts'],
  ),
  bug('sandbox: /run is visible in the jail', `${JAIL}.ts`, "new Set(['/run', ...above", 'new Set([...above', [`${JAIL}.test.ts`]),
  bug(
    'sandbox: commands run without one before other backends are tried',
    'packages/runtime/src/sandbox/select-sandbox.ts',
    'name === backend || !required\n',
    'name === backend\n',
    ['packages/runtime/src/sandbox/select-sandbox.test.ts'],
  ),
  bug(
    'sandbox: another backend replaces a required one that is named',
    'packages/runtime/src/sandbox/select-sandbox.ts',
    'name === backend || !required\n',
    'true\n',
    ['packages/runtime/src/sandbox/select-sandbox.test.ts'],
  ),
  bug(
    'sandbox: a backend that becomes available later is not used',
    'packages/runtime/src/sandbox/sandbox-in-force.ts',
    'if (!this.#latest || this.#latest.isFinal) return',
    'if (!this.#latest || this.#latest) return',
    ['packages/runtime/src/sandbox/sandbox-in-force.test.ts'],
  ),
  bug(
    'shell: an unknown option counts as harmless',
    `${SHELL}/argument-rules.ts`,
    'if (!valued.includes(letter)) return undefined',
    'if (!valued.includes(letter)) return { name: arg, takesNextWord: false }',
    [`${SHELL}/command-risk.test.ts`, `${SHELL}/known-arguments.test.ts`],
  ),
  bug('terminal: text from outside controls it', 'packages/sdk/src/values/printable.ts', '[\\p{Cc}', '[\\0-\\x1f', [
    'packages/sdk/src/values/printable.test.ts',
    'packages/cli/src/output.test.ts',
  ]),
]

const WEBAUTHN = 'packages/webauthn/src'
const SIGN_INS = [`${WEBAUTHN}/sign-in.negative.test.ts`, `${WEBAUTHN}/webauthn.test.ts`, `${WEBAUTHN}/challenges.test.ts`]
const INSTALL = 'packages/plugins-wasm/src/install.test.ts'

const features = [
  bug(
    'passkeys: a challenge is valid more than once',
    'packages/kit/src/limits/one-time-keys.ts',
    'if (!own?.delete(key) || !kept)',
    'if (!own || !kept)',
    SIGN_INS,
  ),
  bug(
    "passkeys: another principal's challenge is taken",
    `${WEBAUTHN}/sign-ins.ts`,
    'if (handle !== undefined && userOf(handle) !== userId) this.#refuse(',
    'if (handle === undefined) this.#refuse(',
    SIGN_INS,
  ),
  bug(
    'passkeys: the user is not verified',
    `${WEBAUTHN}/verify-sign-in.ts`,
    'requireUserVerification: true',
    'requireUserVerification: false',
    SIGN_INS,
  ),
  bug(
    'plugins: another module than the signed one is installed',
    'packages/plugins-wasm/src/trust.ts',
    'if (sha256Hex(module) !== manifest.sha256)',
    'if (false)',
    [INSTALL],
  ),
  bug(
    'plugins: the signature of any publisher is accepted',
    'packages/plugins-wasm/src/trust.ts',
    "trustedKeys.includes(key) ? 'trusted'",
    "trustedKeys ? 'trusted'",
    [INSTALL],
  ),
  bug(
    'domains: a name that only ends like an allowed name is allowed',
    'packages/sdk/src/tool/allowed-domain.ts',
    '(host === domain ||',
    '(host.includes(domain) ||',
    ['packages/tool-browser/src/url-guard.test.ts'],
  ),
]

const HARDWARE = 'packages/hardware/src'
const GUARD = `${HARDWARE}/device-guard.ts`
const GUARD_RULES = [`${HARDWARE}/device-guard.test.ts`]
const LINK = 'packages/hardware-boards/src/protocol/link.ts'
const LINK_RULES = ['packages/hardware-boards/src/protocol/link.test.ts']
const LAYERS = 'packages/hardware-safety/src/core/layers.ts'
const NEVER_RUNS = ['packages/hardware-safety/src/core/never-runs.test.ts', 'packages/hardware-safety/src/kernel/kernel.test.ts']

const hardware = [
  bug(
    'devices: two clients use one device at the same time',
    GUARD,
    'if (held && held.holder !== holder) throw inUse',
    'if (!held && holder === "") throw inUse',
    GUARD_RULES,
  ),
  bug(
    'devices: transactions run concurrently',
    GUARD,
    'lease.queue.run(() => this.#transact(lease, use, work), use.context.signal)',
    'this.#transact(lease, use, work)',
    GUARD_RULES,
  ),
  bug(
    'devices: a write is not recorded',
    GUARD,
    'if (use.write) await this.#record(use)',
    'if (!use.write) await this.#record(use)',
    GUARD_RULES,
  ),
  bug(
    'devices: a pin of another client is written',
    GUARD,
    'held.holder !== holder && held.untilMs > now',
    'held.holder !== holder && held.untilMs < 0',
    GUARD_RULES,
  ),
  bug(
    'devices: a link to a file is accepted as a device',
    `${HARDWARE}/device-path.ts`,
    'await lstat(target)',
    "await (await import('node:fs/promises')).stat(target)",
    [`${HARDWARE}/device-path.test.ts`],
  ),
  {
    name: 'boards: a write is repeated',
    patches: [
      { file: LINK, find: 'if (!repeatable) throw this.#silence(', replace: 'if (attempt > 9) throw this.#silence(' },
      { file: LINK, find: 'repeatable ? Math.min(leftMs, ASK_AGAIN_MS) : leftMs', replace: 'Math.min(leftMs, ASK_AGAIN_MS)' },
    ],
    tests: LINK_RULES,
  },
  bug('boards: the reply to another request is accepted', LINK, 'reply.id !== null && ids.has(reply.id)', 'reply.id !== null', LINK_RULES),
  bug(
    'probe: memory beyond the end of the chip is read',
    'packages/hardware-probe/src/memory-range.ts',
    'end <= range.start + range.length',
    'start <= range.start + range.length',
    ['packages/hardware-probe/src/memory-range.test.ts'],
  ),
  bug(
    'robot: the emergency stop is not latched',
    LAYERS,
    'return latched === null ? undefined',
    'return latched !== null ? undefined',
    NEVER_RUNS,
  ),
  bug('robot: silent sensors are trusted', LAYERS, 'if (stale.length > 0) return', 'if (stale.length > 99) return', NEVER_RUNS),
  bug(
    'robot: the watchdog waits twice as long',
    LAYERS,
    'nowMs - sinceMs >= limits.driveMsMax',
    'nowMs - sinceMs >= 2 * limits.driveMsMax',
    NEVER_RUNS,
  ),
  bug(
    'robot: obstacles are checked only before a movement',
    LAYERS,
    '[estop, fault, bump, sensors, obstacle, watchdog]',
    '[estop, fault, bump, sensors, watchdog]',
    NEVER_RUNS,
  ),
  bug(
    'robot: a reset does not read the emergency stop again',
    'packages/hardware-safety/src/kernel/kernel.ts',
    "if (message.kind === 'reset') this.#body.poll()",
    '',
    ['packages/hardware-safety/src/kernel/kernel.test.ts'],
  ),
  bug(
    'robot: a newer message in the conversation does not stop it',
    'packages/hardware-safety/src/robot-tools.ts',
    'signalScope([signal, superseded])',
    'signalScope([signal])',
    ['packages/hardware-safety/src/robot.test.ts'],
  ),
  bug(
    'adapter: a device that is closed while opening stays open',
    'packages/hardware-adapter/src/drivers/kept-open.ts',
    'await opened?.then((port) => port.close()).catch(() => undefined)',
    'if (await Promise.race([opened, undefined])) await opened?.then((port) => port.close()).catch(() => undefined)',
    ['packages/hardware-adapter/src/drivers/kept-open.test.ts'],
  ),
]

const UNTRUSTED_TESTS = ['packages/agent/src/untrusted.test.ts']
const untrusted = [
  bug(
    'untrusted: the policy does not look for untrusted text',
    'packages/agent/src/tools/tool-call.ts',
    'asksAfterUntrusted(scope, tool, input, by, risk) ?',
    'false ?',
    UNTRUSTED_TESTS,
  ),
  bug(
    'untrusted: a call after untrusted text does not ask',
    'packages/agent/src/tools/tool-call.ts',
    'asksAfterUntrusted: untrusted !== undefined',
    'asksAfterUntrusted: false',
    UNTRUSTED_TESTS,
  ),
  bug(
    'untrusted: a call that sends data out counts as harmless',
    'packages/agent/src/tools/tool-call.ts',
    "(risk !== 'read' || (typeof tool.egress === 'function' ? tool.egress(input, by) : tool.egress))",
    "risk !== 'read'",
    UNTRUSTED_TESTS,
  ),
  bug(
    'untrusted: the reason of a failed call is not framed',
    'packages/agent/src/tools/tool-call.ts',
    'reported.readNothing ? {} : { ...sourceOf(tool, input, by), ...source }',
    '{}',
    UNTRUSTED_TESTS,
  ),
  bug(
    'untrusted: a refusal before anything was read is framed',
    'packages/agent/src/tools/tool-call.ts',
    'reported.readNothing ? {} : {',
    '{',
    UNTRUSTED_TESTS,
  ),
  bug(
    'untrusted: a summary hides untrusted text',
    'packages/agent/src/history/untrusted-in.ts',
    'summary?.untrusted ?',
    'false ?',
    UNTRUSTED_TESTS,
  ),
  bug(
    'untrusted: a result that is no text counts as trusted',
    'packages/agent/src/history/untrusted-in.ts',
    'untrustedSource(value) : part.toolName',
    'untrustedSource(value) : undefined',
    UNTRUSTED_TESTS,
  ),
]

const observability = [
  bug(
    'log: omitted repetitions are not reported',
    'packages/runtime/src/log/repeat-guard.ts',
    'if (window.count === repeatsMax + 1) void',
    'if (window.count === 0) void',
    ['packages/runtime/src/log/log.test.ts'],
  ),
  bug(
    'metrics: dead replies are counted as dead messages',
    'packages/observability-metrics/src/vitals-metrics.ts',
    "{ value: repliesDead, labels: { queue: 'outbox' } }",
    "{ value: messagesDead, labels: { queue: 'outbox' } }",
    ['packages/observability-metrics/src/text-metrics.test.ts'],
  ),
  bug('health: a lost lease is not reported', 'packages/runtime/src/health.ts', 'fault !== null || isDisowned ||', 'fault !== null ||', [
    'packages/runtime/src/health.test.ts',
  ]),
]

export const MUTANTS = [
  ...signatures,
  ...intake,
  ...turns,
  ...replies,
  ...procedures,
  ...approvals,
  ...untrusted,
  ...access,
  ...memory,
  ...confinement,
  ...features,
  ...hardware,
  ...observability,
]

const POSTGRES = 'packages/store-postgres/src'
/** A process commits under leases that another one has taken over, and does not notice. */
const UNFENCED = [
  {
    file: `${POSTGRES}/connection/marked-connection.ts`,
    find: '(((SELECT count(*) FROM held) = cardinality($5::bigint[])) AND EXISTS (SELECT 1 FROM counted))::int`',
    replace: '(EXISTS (SELECT 1 FROM counted) AND cardinality($5::bigint[]) >= 0)::int`',
  },
  { file: `${POSTGRES}/cluster/leases.ts`, find: 'if (!held.has(epoch)) this.#held.get(epoch)?.lose()', replace: 'void epoch' },
  { file: `${POSTGRES}/cluster/held-lease.ts`, find: 'return !this.isLost && this.owner.isAlive', replace: 'return true' },
]
/** An end of a turn, of a message or of a send is stored also after another one. */
const UNCOMPARED = [
  {
    file: `${POSTGRES}/tables/turns.ts`,
    find: 'WHERE stored.id = given.id AND stored.ended_at IS NOT NULL',
    replace: 'WHERE stored.id = given.id AND stored.ended_at < 0',
  },
  {
    file: `${POSTGRES}/tables/turns.ts`,
    find: '        WHERE turn.ended_at IS NULL\n      RETURNING id, idempotency',
    replace: '      RETURNING id, idempotency',
  },
]

/** A bug that a rule of the store on PostgreSQL finds. */
const onPostgres = (name, file, find, replace, title, test = `${POSTGRES}/conformance.postgres.test.ts`) => ({
  name,
  patches: [{ file: `${POSTGRES}/${file}`, find, replace }],
  tests: [test],
  title,
})

/** The bugs that `pnpm mutants --cluster` plants: the rules of a run with several nodes must find each of them under these faults. */
export const CLUSTER_MUTANTS = [
  { name: 'no fence and no comparison of rows', patches: [...UNFENCED, ...UNCOMPARED], tests: [], faults: 'suspend,suspend,suspend' },
  onPostgres(
    'assumption 1: all interrupted sends are those of this process',
    'tables/outbox.ts',
    "WHERE ended_at IS NULL AND state = 'sending' AND shard BETWEEN $1 AND $2 AND NOT (channel",
    "WHERE ended_at IS NULL AND state = 'sending' AND $1::int <= $2::int AND NOT (channel",
    'lists and recovers replies by the shard of their conversation',
  ),
  onPostgres(
    'assumption 2: all waiting messages are those of this process',
    'tables/delivery-table.ts',
    `AND \${waiting} AND \${shard} AND number`,
    `AND \${waiting} AND (\${shard} OR true) AND number`,
    'lists waiting messages by the shard of their session',
  ),
  onPostgres(
    'assumption 3: all unfinished turns are those of this process',
    'tables/turns.ts',
    `inbox IS NULL AND \${shard} AND \${isLeft('$4')}`,
    `inbox IS NULL AND (\${shard} OR true) AND \${isLeft('$4')}`,
    'lists unfinished turns by the shard of their session, or of their id without one',
  ),
  onPostgres(
    'assumption 4: all unfinished runs are those of this process',
    'tables/sops.ts',
    `WHERE ended_at IS NULL AND held_at IS NULL AND \${shard} AND number`,
    `WHERE ended_at IS NULL AND held_at IS NULL AND (\${shard} OR true) AND number`,
    'lists unfinished runs by the shard of their id',
  ),
  onPostgres(
    'assumption 5: no other process listens',
    'cluster/take-leases.ts',
    'one.isAlive && one.process !== process && !(isForced',
    'one.isAlive && one.process === process && !(isForced',
    'work of a leader runs on one node',
    `${POSTGRES}/cluster/cluster.postgres.test.ts`,
  ),
  onPostgres(
    'assumption 6: no other process runs turns of a session',
    'cluster/session-leases.ts',
    `const name: LeaseName = \`\${PREFIX}\${turn.session ?? turn.id}\``,
    `const name: LeaseName = \`\${PREFIX}\${turn.id}\``,
    'turns of one session on two nodes run one after the other',
    'qa/src/cluster/direct-turns.postgres.test.ts',
  ),
  onPostgres(
    'assumption 7: no other process claims keys',
    'tables/idempotency.ts',
    'else if ((await foreign.read()) !== version) await lookUp(key, limits)',
    'else if ((await foreign.read()) < 0) await lookUp(key, limits)',
    'a key that a stored or done turn of another process holds is known',
  ),
  onPostgres(
    'assumption 8: limits count the calls of this process',
    'tables/counters.ts',
    'this.#nodes === undefined ? 0 : Math.floor(this.#limit / (2 * this.#nodes))',
    'this.#limit',
    'nodes share a rate limit, of which each lets a part pass on its own',
    `${POSTGRES}/tables/counters.postgres.test.ts`,
  ),
  {
    name: 'assumption 10: answers to a question reach the process that asked',
    patches: [
      {
        file: 'packages/approvals/src/registry.ts',
        find: 'return refreshed ? refreshed.then(() => this.#matcher.match(channel, inbound)) : this.#matcher.match(channel, inbound)',
        replace: 'return this.#matcher.match(channel, inbound)',
      },
    ],
    tests: ['packages/approvals/src/chat-replies.test.ts'],
    title: 'a reply that reaches another process than the one that asked is recognised there',
  },
  onPostgres(
    'assumption 11: events are those of this process',
    'tables/event-log.ts',
    `FROM events WHERE seq > $1 ORDER BY seq LIMIT \${READ_MAX}`,
    `FROM events WHERE seq > $1 AND process = $2 ORDER BY seq LIMIT \${READ_MAX}`,
    'every node sees the events of all in one order, each once and without a gap',
    `${POSTGRES}/tables/event-log.postgres.test.ts`,
  ),
  onPostgres(
    'assumption 12: no other process starts a run meanwhile',
    'tables/dialect.ts',
    "const LOCK_STARTS = 'SELECT pg_advisory_xact_lock(7351, 0)'",
    "const LOCK_STARTS = 'SELECT 1'",
    'limits hold between processes',
  ),
  {
    name: 'assumption 13: messages are committed in the order of their numbers',
    patches: [
      {
        file: `${POSTGRES}/tables/delivery-table.ts`,
        find: '  const GET = `SELECT',
        replace: '  const seen = new Set<number>()\n  const GET = `SELECT',
      },
      {
        file: `${POSTGRES}/tables/delivery-table.ts`,
        find: 'return shards ? db.shards.all<Row & Columns>(WAITING, shards, limit, after, limit, except) : []',
        replace: `const rows = shards ? await db.shards.all<Row & Columns>(WAITING, shards, limit, after, limit, except) : []
      const last = Math.max(0, ...seen)
      const known = rows.filter(({ number }) => seen.has(Number(number)) || Number(number) > last)
      for (const { number } of known) seen.add(Number(number))
      return known`,
      },
    ],
    tests: [`${POSTGRES}/cluster/cluster.postgres.test.ts`],
    title: 'a message that is committed after one with a higher number is listed as waiting',
  },
]

/** Returns a line for each patch whose text does not occur exactly once in its file below `root`, and for each missing test file. */
export const stalePatches = ({ name, patches, tests }, root) => [
  ...patches.flatMap(({ file, find }) => {
    const path = join(root, file)
    const fits = existsSync(path) ? readFileSync(path, 'utf8').split(find).length - 1 : 0
    return fits === 1 ? [] : [`'${name}' fits ${fits} times into ${file}: ${find}`]
  }),
  ...tests.flatMap((file) => (existsSync(join(root, file)) ? [] : [`'${name}' names a test file that is not there: ${file}`])),
]
