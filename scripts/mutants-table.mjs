// Bugs that no release may have, each as patches of shipped sources and the test files of which one must fail. A patch fits exactly
// once, so that a patch that no longer fits is noticed.

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

const STORE = 'packages/store/src'
const REPLAYS = 'qa/src/e2e/replay.test.ts'
const VECTORS = 'qa/src/vectors/vectors.test.ts'
const FUZZ = 'qa/src/fuzz/fuzz.test.ts'
const SOURCES = 'qa/src/repo.test.ts'
const INTAKE_TESTS = 'packages/delivery/src/intake.test.ts'
const INBOX_TESTS = 'packages/delivery/src/inbox-worker.test.ts'
const OUTBOX_TESTS = 'packages/delivery/src/outbox-worker.test.ts'
const LANE_QUEUE = 'packages/kit/src/lane-queue.ts'
const LANES = 'packages/kit/src/lane-queue.test.ts'
const STORE_RULES = `${STORE}/conformance.test.ts`
const SOP = 'packages/sop/src'
const APPROVALS = 'packages/approvals/src'
const TOOL_STEP = `${SOP}/tool-step.test.ts`
const ENGINE = `${SOP}/engine.test.ts`
const CHAT_REPLIES = `${APPROVALS}/chat-replies.test.ts`
const HTTP = 'packages/http/src'
/** Another one with each opening of the store, as memory is. */
const OF_THIS_RUN = '(db.mutant ??= String(Math.random()))'

const bug = (name, file, find, replace, tests) => ({ name, patches: [{ file, find, replace }], tests })

const proof = [
  bug(
    'the signature is over the JSON written anew (chatapp)',
    'packages/channel-chatapp/src/webhook.ts',
    '[body], signature',
    '[JSON.stringify(JSON.parse(Buffer.from(body).toString()))], signature',
    [VECTORS, 'packages/channel-chatapp/src/webhook.test.ts'],
  ),
  bug(
    'the signature is over the text and not the bytes (roomchat)',
    'packages/channel-roomchat/src/webhook.ts',
    'isSigned(secret, random.value, body,',
    'isSigned(secret, random.value, Buffer.from(body).toString(),',
    ['packages/channel-roomchat/src/conformance.test.ts'],
  ),
  bug(
    'the time window is open to the future (textrelay)',
    'packages/sdk/src/fresh.ts',
    'Math.abs(nowMs / 1000 - timestampSecs)',
    'nowMs / 1000 - timestampSecs',
    [VECTORS, FUZZ],
  ),
  bug(
    'the time is not looked at (textrelay)',
    'packages/channel-textrelay/src/webhook.ts',
    '/^\\d+$/.test(time) && isFresh(',
    '/^\\d+$/.test(time) || isFresh(',
    [FUZZ, REPLAYS],
  ),
  bug('a secret is compared with ===', 'packages/channel-bizchat/src/webhook.ts', 'equalTexts(token, secret)', 'token === secret', [
    SOURCES,
  ]),
  bug(
    'a signature is compared with ===',
    'packages/channel-chatapp/src/webhook.ts',
    '!verifyHmac(secret.reveal().trim(), [body], signature, { prefix: SIGNATURE_PREFIX })',
    "signature !== SIGNATURE_PREFIX + hmacSha256(secret.reveal().trim(), body).toString('hex')",
    [SOURCES],
  ),
  bug(
    'digests are compared byte by byte',
    'packages/sdk/src/hmac.ts',
    'a.length === b.length && timingSafeEqual(a, b)',
    'Buffer.compare(a, b) === 0',
    [SOURCES],
  ),
  bug('a signature in base64 has several forms', 'packages/sdk/src/hmac.ts', '{42}[AEIMQUYcgkosw048]=$/', '{43}=$/', [FUZZ]),
  bug(
    'the audience of a push token is not looked at (mailpush)',
    'packages/channel-mailpush/src/push-token.ts',
    '        audience,\n',
    '',
    [VECTORS, FUZZ],
  ),
]

const arrival = [
  bug(
    'a webhook is answered before its message is durable',
    'packages/http/src/routes/webhooks.ts',
    'const { kept, duplicate, denied } = await this.#intake.receive(this.channel, received)',
    'const [kept, duplicate, denied] = [messages.length, 0, 0]\n    this.#intake.receive(this.channel, received).catch(() => {})',
    ['packages/http/src/routes/webhooks.test.ts'],
  ),
  bug(
    'a write is resolved before its commit',
    `${STORE}/group-commit.ts`,
    'return units.map(({ run }) => run())',
    'return units.map(({ run, resolve }) => {\n          const result = run()\n          resolve(result)\n          return result\n        })',
    [`${STORE}/group-commit.test.ts`, `${STORE}/open-store.test.ts`],
  ),
  bug(
    'known messages are known in memory only',
    `${STORE}/keep-arrival.ts`,
    "key: rowKey(ids[index] ?? '')",
    `key: rowKey((ids[index] ?? '') + ${OF_THIS_RUN})`,
    [REPLAYS, INTAKE_TESTS],
  ),
  bug(
    'a message is known without its account',
    `${STORE}/keep-arrival.ts`,
    '=> joinTexts(channel, account, id))\n',
    '=> joinTexts(channel, id))\n',
    [STORE_RULES, INTAKE_TESTS],
  ),
  bug(
    'a random value is remembered in memory only (roomchat)',
    `${STORE}/keep-arrival.ts`,
    'joinTexts(channel, nonce.value)',
    `joinTexts(channel, nonce.value, ${OF_THIS_RUN})`,
    [REPLAYS],
  ),
  bug(
    'a random value is forgotten at once (roomchat)',
    'packages/delivery/src/intake.ts',
    'untilMs: receivedAtMs + NONCE_MS',
    'untilMs: receivedAtMs',
    [REPLAYS],
  ),
  bug(
    'the cap of an account is not kept',
    'packages/delivery/src/intake.ts',
    'this.#exceeds(messages.filter(isNoReply), max_pending) ||',
    'this.#exceeds(messages.filter(isNoReply), max_pending + 1e9) ||',
    [INTAKE_TESTS],
  ),
  bug(
    'an empty allowlist allows everybody',
    'packages/sdk/src/allow.ts',
    "if (list.includes('*'))",
    "if (list.length === 0 || list.includes('*'))",
    ['packages/delivery/src/allowed-senders.test.ts'],
  ),
  bug(
    'the message of a stranger is kept',
    'packages/delivery/src/intake.ts',
    'this.#senders.admit(channel, sender))',
    'this.#senders.admit(channel, sender) || true)',
    [INTAKE_TESTS],
  ),
  bug(
    'the cursor moves before the mails are handed over (mailpush)',
    'packages/channel-mailpush/src/catch-up.ts',
    '    for (const id of ids) if (!progress.isDelivered(id))',
    '    await progress.moveTo(end, atMs)\n    for (const id of ids) if (!progress.isDelivered(id))',
    ['packages/channel-mailpush/src/interop-mailbox.test.ts'],
  ),
  bug(
    'the mail of the first push is lost (mailpush)',
    'packages/channel-mailpush/src/mailbox-listener.ts',
    'begin && begin.historyId < newest',
    'begin && begin.historyId > newest',
    ['packages/channel-mailpush/src/interop-mailbox.test.ts'],
  ),
]

const turns = [
  bug(
    'two messages of one session run at once',
    LANE_QUEUE,
    'enter(job: Job): QueuedJob | undefined {',
    'enter(queued: Job): QueuedJob | undefined {\n    const job = { ...queued, lane: String(Math.random()) }',
    [LANES, INBOX_TESTS],
  ),
  bug(
    'a message that waits for another attempt holds a place',
    LANE_QUEUE,
    'const outcome = await outcomeOf(job, attempt)\n',
    "const outcome = await outcomeOf(job, attempt)\n    if (outcome !== 'done') await this.#clock.sleep(outcome.retryAtMs - this.#clock.nowMs())\n",
    [LANES],
  ),
  bug(
    'a turn does not learn that another waits behind it',
    LANE_QUEUE,
    'lane.behind.push(entry)\n      lane.head.attempt?.supersede()',
    'lane.behind.push(entry)',
    [LANES, INBOX_TESTS],
  ),
  bug(
    'attempts are not counted as they start',
    `${STORE}/message-attempt.ts`,
    'attempts = attempts + NOT',
    'attempts = attempts + 0 * NOT',
    [STORE_RULES, INBOX_TESTS],
  ),
  {
    name: 'a reply is queued after the commit that ends its turn',
    patches: [
      {
        file: 'packages/delivery/src/inbox-worker.ts',
        find: 'const { replies } = await turns.agent.run({',
        replace: 'let later = []\n    await turns.agent.run({',
      },
      {
        file: 'packages/delivery/src/inbox-worker.ts',
        find: 'reply: (said, span) =>\n          repliesOf(said, {',
        replace: 'reply: (said, span) =>\n          ((later = repliesOf(said, {',
      },
      {
        file: 'packages/delivery/src/inbox-worker.ts',
        find: 'trace: telemetry.traces() ? formatTraceContext(span) : undefined,\n          }),',
        replace: 'trace: telemetry.traces() ? formatTraceContext(span) : undefined,\n          })), []),',
      },
      {
        file: 'packages/delivery/src/inbox-worker.ts',
        find: '    const lane = replyLane({ channel: channel.name, account, to: message.to })\n',
        replace:
          '    const replies = await this.#options.store.outbox.add(later)\n    const lane = replyLane({ channel: channel.name, account, to: message.to })\n',
      },
    ],
    tests: [OUTBOX_TESTS],
  },
  bug(
    'a replayed message has another id',
    `${STORE}/inbox.ts`,
    "UPDATE inbox SET state = 'pending', attempts = 0,",
    "UPDATE inbox SET message_json = json_set(message_json, '$.id', hex(randomblob(8))), state = 'pending', attempts = 0,",
    [STORE_RULES],
  ),
]

const replies = [
  bug(
    'a failed attempt that could not be noted leaves its reply under way',
    'packages/delivery/src/outbox-worker.ts',
    'await this.#record(number, () => store.outbox.retry(number, { error: reason, atMs, uncounted: !isOurs }))',
    'await store.outbox.retry(number, { error: reason, atMs, uncounted: !isOurs })',
    [OUTBOX_TESTS],
  ),
  {
    name: 'a reply that was sent, but could not be noted, is sent again',
    patches: [
      {
        file: 'packages/delivery/src/outbox-worker.ts',
        find: 'await this.#record(number, () => store.outbox.sent(number, { providerId: id, atMs: clock.nowMs() }))',
        replace:
          "try {\n    await store.outbox.sent(number, { providerId: id, atMs: clock.nowMs() })\n  } catch {\n    return this.#failed({ started, channel, error: new AppError('unavailable', 'not recorded'), startedMs, ended })\n  }",
      },
    ],
    tests: [OUTBOX_TESTS],
  },
  bug(
    'a reply that may have been sent is sent again',
    'packages/delivery/src/outbox-worker.ts',
    '(UNKNOWN.has(code) && isSafe)',
    'UNKNOWN.has(code)',
    [OUTBOX_TESTS],
  ),
  bug(
    'a reply may have been sent before a byte was written',
    'packages/kit/src/call-provider.ts',
    "if (progress() === 'connecting') {",
    "if (progress() === '') {",
    ['packages/kit/src/call-provider.test.ts'],
  ),
  bug(
    'an outage of the platform counts as an attempt',
    'packages/delivery/src/outbox-worker.ts',
    'isRepeatable && (isOurs ? attempts < max_attempts : ageMs < max_age_hours * HOUR_MS)',
    'isRepeatable && attempts < max_attempts',
    [OUTBOX_TESTS],
  ),
  bug(
    'markers of files are looked for in quadratic time',
    'packages/delivery/src/reply-files.ts',
    '([^[\\]\\n]{1,1000})',
    '([^\\]\\n]{1,20000})',
    ['packages/delivery/src/reply-files.test.ts'],
  ),
  {
    name: 'after a crash, what was under way is sent again',
    patches: [
      { file: `${STORE}/outbox.ts`, find: "SET state = 'ambiguous', error", replace: "SET state = 'queued', error" },
      {
        file: `${STORE}/outbox.ts`,
        find: "', ended_at = ?\n  WHERE state = 'sending'",
        replace: "', next_at = ?\n  WHERE state = 'sending'",
      },
    ],
    tests: [STORE_RULES, OUTBOX_TESTS],
  },
  bug(
    'a replayed reply has another client id',
    `${STORE}/outbox.ts`,
    "UPDATE outbox SET state = 'queued', attempts = 0, error = NULL, ended_at = NULL, replayed_at = ?\n",
    "UPDATE outbox SET client_id = hex(randomblob(8)), state = 'queued', attempts = 0, error = NULL, ended_at = NULL, replayed_at = ?\n",
    [STORE_RULES],
  ),
  bug(
    'a long reply is split inside a character',
    'packages/kit/src/split-text-break.ts',
    'const whole = startOf(last) || last',
    'const whole = last',
    ['packages/kit/src/split-text.test.ts'],
  ),
  bug('a code fence is left open where a reply is split', 'packages/kit/src/split-text.ts', "body + (cut?.closing ?? '')", 'body', [
    'packages/kit/src/split-text.test.ts',
  ]),
]

const procedures = [
  bug(
    'procedure: a tool with effects runs before it is kept that it begins',
    `${SOP}/tool-step.ts`,
    "if (risk !== 'read') await runs",
    "if (risk === 'never') await runs",
    [TOOL_STEP],
  ),
  {
    name: 'procedure: a call that was cut is made again unasked',
    patches: [
      { file: `${SOP}/tool-step.ts`, find: '  if (run.attempt) {', replace: '  if (!run) {' },
      {
        file: `${SOP}/tool-step.ts`,
        find: "if (risk !== 'read') await runs",
        replace: "if (risk !== 'read' && !run.attempt) await runs",
      },
    ],
    tests: [TOOL_STEP],
  },
  bug('procedure: a call agreed to again is taken for the one before', `${SOP}/tool-step.ts`, 'callId: `call-', 'callId: `same` || `', [
    TOOL_STEP,
  ]),
  bug(
    'procedure: a stop waits for a person',
    `${SOP}/tool-step.ts`,
    '  const startedAtMs = clock.nowMs()\n',
    '  const startedAtMs = clock.nowMs()\n  execution.isToolRunning = true\n',
    [TOOL_STEP],
  ),
  bug(
    'procedure: a step whose turn may have acted is tried again unasked',
    `${SOP}/agent-step.ts`,
    'step?.tools?.length !== 0 && (model !== null || starts > 1)',
    'false && step && model && starts',
    [ENGINE],
  ),
  bug(
    'procedure: after a restart a step has another turn',
    `${SOP}/agent-step.ts`,
    'const turnId = run.attempt?.turnId ?? ports.newId()',
    'const turnId = ports.newId()',
    [ENGINE],
  ),
  bug(
    'procedure: runs are not taken up after a restart',
    `${SOP}/engine.ts`,
    '      this.#activeRuns.wake(run)\n      count++',
    '      count++',
    [ENGINE],
  ),
  bug(
    'procedure: two who change a run at once both do',
    `${STORE}/sops.ts`,
    ' AND run_json = ? AND ended_at IS NULL',
    ' AND ? IS NOT NULL',
    [STORE_RULES],
  ),
  bug(
    'procedure: a repeated event starts its runs again',
    `${STORE}/start-runs.ts`,
    'const known = key && db.get',
    'const known = key && !key && db.get',
    [STORE_RULES],
  ),
  bug(
    'procedure: an event is remembered after the commit that starts its runs',
    `${STORE}/start-runs.ts`,
    'if (newKey !== null || idempotency !== null) db.run(REMEMBER',
    'if (newKey !== null) db.run(REMEMBER',
    [STORE_RULES],
  ),
  bug('procedure: a record does not follow from the one before it', `${STORE}/audit-log.ts`, '      previous = hash\n', '', [STORE_RULES]),
  bug(
    'procedure: a checkpoint does not wait',
    `${SOP}/gates.ts`,
    "if (step.kind === 'checkpoint') return 'checkpoint'",
    "if (step.kind === 'checkpoint' && mode !== 'deterministic') return 'checkpoint'",
    [`${SOP}/gates.test.ts`, TOOL_STEP],
  ),
  bug('procedure: an instant of the clock has no key', 'packages/daemon/src/procedures.ts', 'key: `cron ', 'lost: `cron ', [
    'packages/daemon/src/procedures.test.ts',
  ]),
]

const approvals = [
  bug('approval: two who decide at once both do', `${STORE}/approvals.ts`, "step_id = ? AND state = 'pending'`", 'step_id = ?`', [
    STORE_RULES,
    CHAT_REPLIES,
  ]),
  {
    name: 'approval: a time-out approves',
    patches: [
      {
        file: `${APPROVALS}/registry.ts`,
        find: "decide(key, { state: 'expired', by: 'timeout' })",
        replace: "decide(key, { state: 'approved', by: 'timeout' })",
      },
      { file: `${STORE}/approvals.ts`, find: "if (state === 'approved' || state === 'rejected') db", replace: "if (by !== 'timeout') db" },
    ],
    tests: [CHAT_REPLIES, `${APPROVALS}/registry.test.ts`],
  },
  bug(
    'approval: an answer counts that comes after its time',
    `${STORE}/approvals.ts`,
    "if (state === 'approved' || state === 'rejected') db",
    "if (state === 'rejected') db",
    [STORE_RULES],
  ),
  bug(
    'approval: what was decided and not taken is forgotten over a restart',
    `${APPROVALS}/registry.ts`,
    'else this.#dispatcher.enter(approval)\n    }\n    if (found',
    '}\n    if (found',
    [CHAT_REPLIES],
  ),
  bug(
    'approval: what waits is forgotten over a restart',
    `${APPROVALS}/registry.ts`,
    "if (approval.state === 'pending') this.#keep(approval)\n      else",
    'if (approval.state !== "pending")',
    [CHAT_REPLIES],
  ),
  bug(
    'approval: it is confirmed before the gate has taken it',
    `${APPROVALS}/dispatch.ts`,
    '        await handler(approval)\n        await acknowledged(approval)\n',
    '        await acknowledged(approval)\n        await handler(approval)\n',
    [CHAT_REPLIES],
  ),
  bug(
    'approval: it is confirmed again whenever it is taken again',
    `${STORE}/approvals.ts`,
    " AND state <> 'pending' AND settled_at IS NULL`",
    " AND state <> 'pending'`",
    [STORE_RULES],
  ),
  bug('approval: nobody is told of the decision', `${APPROVALS}/registry.ts`, '    emitResolved(bus, approval)\n', '', [
    CHAT_REPLIES,
    `${APPROVALS}/registry.test.ts`,
    'packages/http/src/routes/approvals.test.ts',
  ]),
  bug(
    'approval: silence lets a tool run',
    `${APPROVALS}/tool-approver.ts`,
    "decided.state === 'approved' && decided.by !== null",
    "decided.state !== 'rejected' && decided.by !== null",
    [`${APPROVALS}/tool-approver.test.ts`],
  ),
  bug(
    'approval: a tool call in a turn is not written ahead',
    'packages/agent/src/tool-round.ts',
    'onBegin: writeAhead }',
    'onBegin: undefined }',
    ['packages/agent/src/agent-write-ahead.test.ts'],
  ),
  bug(
    'approval: what a subscriber missed while it was away is not sent',
    'packages/runtime/src/events/event-bus.ts',
    'return { events: this.#from(after + 1), missed',
    'return { events: this.#from(this.#seq + 1), missed',
    ['packages/runtime/src/events/event-bus.test.ts', 'packages/http/src/streams/sse.test.ts'],
  ),
  bug('approval: whom a question concerns is forgotten over a restart', `${STORE}/approvals.ts`, 'asked.person ?? null', 'null', [
    CHAT_REPLIES,
  ]),
  bug(
    'approval: the answer to one call lets another run',
    `${APPROVALS}/tool-approver.ts`,
    'if (first.approval.callHash === (question.callHash ?? null)) return first',
    'if (first) return first',
    [`${APPROVALS}/tool-approver.test.ts`],
  ),
  bug(
    'approval: what runs is not what was shown',
    'packages/agent/src/approval.ts',
    'return callHash(tool.name, input) === hash ? answer',
    'return hash ? answer',
    ['packages/agent/src/tool-call.test.ts'],
  ),
  bug(
    'approval: the policy is not asked again after a person was',
    'packages/agent/src/tool-call.ts',
    'answer ? this.judge(scope, prepared) : judged',
    'judged',
    ['packages/agent/src/tool-call.test.ts'],
  ),
  bug(
    'approval: waiting for a person counts as an attempt (store)',
    `${STORE}/turns.ts`,
    'isWaiting ? [UNCOUNT_ATTEMPT, UNCOUNT_MESSAGE_ATTEMPT] : [COUNT_ATTEMPT, COUNT_MESSAGE_ATTEMPT]',
    '[COUNT_ATTEMPT, COUNT_MESSAGE_ATTEMPT]',
    [STORE_RULES],
  ),
  bug(
    'approval: a start counts as an attempt while its question is open',
    `${STORE}/message-attempt.ts`,
    'attempts = attempts + NOT',
    'attempts = attempts + 1 + 0 * NOT',
    [STORE_RULES],
  ),
  bug(
    'approval: waiting for a person counts as an attempt (agent)',
    'packages/agent/src/conduct-turn.ts',
    'if (turn.kept) await deps.store.turns.waits',
    'if (!turn.kept) await deps.store.turns.waits',
    ['packages/agent/src/agent-asking.test.ts'],
  ),
  bug(
    'approval: a question stays open after its turn is gone',
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

const AUTHORIZATION = [`${HTTP}/auth.test.ts`, `${HTTP}/routes/webhook.test.ts`]
const CHAT = 'packages/http/src/streams/chat'

const access = [
  bug(
    'webhook: a keyed turn is not kept before it begins',
    'packages/agent/src/agent.ts',
    'const kept = idempotency && !delivery ? Promise.withResolvers<void>() : undefined',
    'const kept = undefined',
    ['packages/agent/src/agent-durability.test.ts'],
  ),
  bug('webhook: a keyed turn begins before it is kept', 'packages/agent/src/agent.ts', '      await turn.kept\n', '', [
    'packages/agent/src/agent-durability.test.ts',
  ]),
  bug(
    'devices: a turn starts for a device that was revoked while its body was read',
    `${HTTP}/middleware/body.ts`,
    "    await checkStillGood(c.get('caller'), auth)\n",
    '',
    [`${HTTP}/routes/webhook.test.ts`],
  ),
  bug(
    'devices: a message that waits becomes a turn of a revoked device',
    `${CHAT}.ts`,
    'if (allowed !== true && !(await allowed)) return this.#shutOut()',
    'await allowed',
    [`${CHAT}.test.ts`],
  ),
  bug(
    'devices: a client may do what only an operator may',
    `${HTTP}/middleware/authenticate.ts`,
    "if (role !== 'operator') throw",
    'if (role === null) throw',
    [`${HTTP}/roles.test.ts`],
  ),
  bug(
    'lockout: a valid token is locked out with its address',
    `${HTTP}/auth.ts`,
    'const token = bearerToken(headers)\n      if',
    'const token = bearerToken(headers)\n      if (!spared) lockout.check(address)\n      if',
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
    'bodies: an unfinished body is kept as a list of its pieces',
    `${HTTP}/body.ts`,
    'const read = new ByteBuffer()',
    'const read = {\n      length: 0,\n      pieces: [],\n      append(piece) {\n        this.pieces.push(piece)\n        this.length += piece.length\n      },\n      clear() {},\n      bytes() {\n        return Buffer.concat(this.pieces)\n      },\n    }',
    [`${HTTP}/body.test.ts`],
  ),
  bug(
    'bodies: an unfinished body keeps others out',
    `${HTTP}/body-budget.ts`,
    'if (!victim) throw noRoom()',
    'if (victim || !victim) throw noRoom()',
    [`${HTTP}/body-budget.test.ts`],
  ),
  bug(
    'secrets: a text of the log is cut before secrets are masked in it',
    'packages/runtime/src/log/printable-fields.ts',
    'return PATTERNS.reduce((clean, [pattern, replacement]) => clean.replace(pattern, replacement), cut)',
    'return hide(PATTERNS.reduce((clean, [pattern, replacement]) => clean.replace(pattern, replacement), whole.slice(0, STRING_CHARS_MAX)))',
    ['packages/runtime/src/log/log.test.ts'],
  ),
]

const memory = [
  bug(
    'memory: a search finds what another client remembered',
    `${STORE}/memory.ts`,
    'const READABLE = `(memories.owner = ?1 OR memories.owner IN',
    'const READABLE = `(?1 IS NOT NULL OR memories.owner IN',
    [STORE_RULES],
  ),
  bug(
    'memory: what one client remembers belongs to all',
    'packages/tool-memory/src/memory-tools.ts',
    'return caller\n',
    'return SHARED_MEMORIES\n',
    ['packages/tool-memory/src/memory-tools.test.ts'],
  ),
  bug(
    'retention: a turn that has not ended is deleted',
    `${STORE}/prune.ts`,
    'SELECT id FROM turns WHERE ended_at < ?',
    'SELECT id FROM turns WHERE coalesce(ended_at, 0) < ?',
    [STORE_RULES],
  ),
  bug(
    'retention: a reply that waits or was given up goes to make room',
    `${STORE}/prune.ts`,
    "WHERE ended_at IS NOT NULL AND +state = 'sent'",
    "WHERE +state <> ''",
    [STORE_RULES],
  ),
  bug(
    'retention: the body of a message that is not done goes to make room',
    `${STORE}/prune.ts`,
    "WHERE state = 'done' AND message_json IS NOT NULL",
    'WHERE message_json IS NOT NULL',
    [STORE_RULES],
  ),
  bug(
    'retention: old data is deleted in the first week after an upgrade',
    'packages/runtime/src/retention.ts',
    'store.prune(isHeld ? withoutDeletions(retention) : retention)',
    'store.prune(retention)',
    ['packages/runtime/src/retention.test.ts'],
  ),
  bug('erasure: what was erased is still said from memory', `${STORE}/conversation-eraser.ts`, '    this.#cache.delete(id)\n', '', [
    STORE_RULES,
  ]),
  bug(
    'erasure: what was erased stays readable in the write-ahead log',
    `${STORE}/conversation-eraser.ts`,
    'purged: emptyLog(db)',
    'purged: true',
    [`${STORE}/conversation-eraser.test.ts`],
  ),
  bug(
    'storage: a database is upgraded under a running daemon',
    `${STORE}/migrate.ts`,
    'const lock = options.lock?.()',
    'const lock = undefined',
    [`${STORE}/open-data-dir.test.ts`],
  ),
  bug(
    'storage: no copy is kept from before an upgrade',
    `${STORE}/migrate.ts`,
    'const copy = copyBeforeUpgrade(db,',
    'const copy = String(db,',
    [`${STORE}/migrate.test.ts`],
  ),
  bug(
    'storage: a data directory that lost its database starts anew',
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
    'procedure: one that the agent changed is loaded',
    `${SOP}/load-sop.ts`,
    'if (hash !== agreed) return',
    'if (agreed === null) return',
    [`${SOP}/load-sops.test.ts`],
  ),
  bug(
    'policy: a turn under way acts by the one it began with',
    'packages/runtime/src/features/lifecycle.ts',
    'if (!this.#applied || !this.#replacedGuards.has(built)) return built',
    'if (built) return built',
    ['packages/runtime/src/features/lifecycle.test.ts'],
  ),
  bug(
    'config: one that the agent can write is taken up',
    'packages/runtime/src/workspace/agent-writable.ts',
    'return isWithin(data, root) || !isWithin(data, inner)',
    'return isWithin(data, root)',
    ['packages/runtime/src/workspace/agent-writable.test.ts'],
  ),
  bug(
    'config: a file that lost a section is applied at once',
    'packages/config/src/watch-config.ts',
    'if (clock.nowMs() < held.untilMs) continue',
    'if (clock.nowMs() < 0) continue',
    ['packages/config/src/watch-config.test.ts'],
  ),
  bug(
    'plugins: those in the workspace are loaded',
    'packages/plugins-wasm/src/check-place.ts',
    'if (!isWithin(root, folder) || (',
    'if (folder !== root || (',
    ['packages/plugins-wasm/src/check-place.test.ts'],
  ),
  bug('sandbox: /run is visible in the jail', `${JAIL}.ts`, "new Set(['/run', ...above", 'new Set([...above', [`${JAIL}.test.ts`]),
  bug(
    'sandbox: commands run without one before the others are tried',
    'packages/runtime/src/sandbox/select-sandbox.ts',
    'of options.sandboxes.toSorted(',
    "of options.sandboxes.filter(({ name }) => backend === 'auto' || name === backend).toSorted(",
    ['packages/runtime/src/sandbox/select-sandbox.test.ts'],
  ),
  bug(
    'sandbox: a backend that comes up later is never taken',
    'packages/runtime/src/sandbox/sandbox-in-force.ts',
    'if (!this.#latest || this.#latest.isFinal) return',
    'if (!this.#latest || this.#latest) return',
    ['packages/runtime/src/sandbox/sandbox-in-force.test.ts'],
  ),
  bug(
    'shell: an option that is not known counts as harmless',
    `${SHELL}/argument-rules.ts`,
    'if (!valued.includes(letter)) return undefined',
    'if (!valued.includes(letter)) return { name: arg, takesNextWord: false }',
    [`${SHELL}/command-risk.test.ts`, `${SHELL}/known-arguments.test.ts`],
  ),
  bug('terminal: text of others commands it', 'packages/sdk/src/printable.ts', '[\\p{Cc}', '[\\0-\\x1f', [
    'packages/sdk/src/printable.test.ts',
    'packages/cli/src/output.test.ts',
  ]),
]

const WEBAUTHN = 'packages/webauthn/src'
const SIGN_INS = [`${WEBAUTHN}/sign-in.negative.test.ts`, `${WEBAUTHN}/webauthn.test.ts`, `${WEBAUTHN}/challenges.test.ts`]
const INSTALL = 'packages/plugins-wasm/src/install.test.ts'

const features = [
  bug(
    'passkeys: a challenge is valid more than once',
    `${WEBAUTHN}/challenges.ts`,
    'if (!own?.delete(challenge) || !pending)',
    'if (!own || !pending)',
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
    'plugins: a module that is not the signed one is installed',
    'packages/plugins-wasm/src/trust.ts',
    'if (sha256Hex(module) !== manifest.sha256)',
    'if (false)',
    [INSTALL],
  ),
  bug(
    'plugins: a signature is enough, whoever made it',
    'packages/plugins-wasm/src/trust.ts',
    "trustedKeys.includes(key) ? 'trusted'",
    "trustedKeys ? 'trusted'",
    [INSTALL],
  ),
  bug(
    'domains: a name that only ends like an allowed one is allowed',
    'packages/sdk/src/allowed-domain.ts',
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
    'devices: two clients use one at a time',
    GUARD,
    'if (held && held.holder !== holder) throw inUse',
    'if (!held && holder === "") throw inUse',
    GUARD_RULES,
  ),
  bug(
    'devices: transactions do not wait for each other',
    GUARD,
    'lease.queue.run(() => this.#transact(lease, use, work), use.context.signal)',
    'this.#transact(lease, use, work)',
    GUARD_RULES,
  ),
  bug(
    'devices: a write is not on record',
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
    'devices: a link to a file passes for a device',
    `${HARDWARE}/device-path.ts`,
    'await lstat(path)',
    "await (await import('node:fs/promises')).stat(path)",
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
  bug('boards: a reply to another request is accepted', LINK, 'reply.id !== null && ids.has(reply.id)', 'reply.id !== null', LINK_RULES),
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
    'robot: a newer message in its conversation does not stop it',
    'packages/hardware-safety/src/robot-tools.ts',
    'signalScope([signal, superseded])',
    'signalScope([signal])',
    ['packages/hardware-safety/src/robot.test.ts'],
  ),
  bug(
    'adapter: a device that is closed while it opens stays open',
    'packages/hardware-adapter/src/drivers/kept-open.ts',
    'await opened?.then((port) => port.close()).catch(() => undefined)',
    'if (await Promise.race([opened, undefined])) await opened?.then((port) => port.close()).catch(() => undefined)',
    ['packages/hardware-adapter/src/drivers/kept-open.test.ts'],
  ),
]

export const MUTANTS = [
  ...proof,
  ...arrival,
  ...turns,
  ...replies,
  ...procedures,
  ...approvals,
  ...access,
  ...memory,
  ...confinement,
  ...features,
  ...hardware,
]

/** Says which patches of a bug do not fit exactly once into their files below `root`, and which of its test files are missing. */
export const stalePatches = ({ name, patches, tests }, root) => [
  ...patches.flatMap(({ file, find }) => {
    const path = join(root, file)
    const fits = existsSync(path) ? readFileSync(path, 'utf8').split(find).length - 1 : 0
    return fits === 1 ? [] : [`'${name}' fits ${fits} times into ${file}: ${find}`]
  }),
  ...tests.flatMap((file) => (existsSync(join(root, file)) ? [] : [`'${name}' names a test file that is not there: ${file}`])),
]
