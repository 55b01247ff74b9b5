// Bugs that durable ingress must not have, each as a patch of shipped sources and the tests that know better. A patch has to
// fit exactly once, so that none of them goes stale unnoticed; the files are the ones a bug of its kind would be in.

const GATEWAY = 'packages/gateway/src'
const STORE = 'packages/store/src'
const REPLAYS = 'packages/cli/src/replay.test.ts'
const VECTORS = 'packages/cli/src/vectors.test.ts'
const FUZZ = 'packages/testkit/src/fuzz/fuzz.test.ts'
const SOURCES = 'packages/testkit/src/repo.test.ts'
const DELIVERIES = `${GATEWAY}/delivery/deliveries.test.ts`
const LANES = `${GATEWAY}/delivery/work-lanes.test.ts`
const STORE_RULES = `${STORE}/conformance.test.ts`
/** Another one with each opening of the store, as memory is. */
const OF_THIS_RUN = '(db.mutant ??= String(Math.random()))'

const bug = (name, file, find, replace, tests) => ({ name, patches: [{ file, find, replace }], tests })

const proof = [
  bug(
    'the signature is over the JSON written anew (chatapp)',
    'packages/channel-chatapp/src/verify.ts',
    '[body], signature',
    '[JSON.stringify(JSON.parse(Buffer.from(body).toString()))], signature',
    [VECTORS, 'packages/channel-chatapp/src/vectors.test.ts'],
  ),
  bug(
    'the signature is over the text and not the bytes (roomchat)',
    'packages/channel-roomchat/src/verify.ts',
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
    'packages/channel-textrelay/src/verify.ts',
    '/^\\d+$/.test(time) && isFresh(',
    '/^\\d+$/.test(time) || isFresh(',
    [FUZZ, REPLAYS],
  ),
  bug('a secret is compared with ===', 'packages/channel-bizchat/src/verify.ts', 'equalTexts(token, secret)', 'token === secret', [
    SOURCES,
  ]),
  {
    name: 'a signature is compared with ===',
    patches: [
      { file: 'packages/channel-chatapp/src/verify.ts', find: 'type Verified, verifyHmac }', replace: 'type Verified, hmacSha256 }' },
      {
        file: 'packages/channel-chatapp/src/verify.ts',
        find: '!verifyHmac(secret.reveal().trim(), [body], signature, { prefix: SIGNATURE_PREFIX })',
        replace: "signature !== SIGNATURE_PREFIX + hmacSha256(secret.reveal().trim(), body).toString('hex')",
      },
    ],
    tests: [SOURCES],
  },
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
    `${GATEWAY}/http/channel-webhook.ts`,
    'const { kept, duplicate, denied } = await receive(channel, { raw: raw.body, verified, receivedAtMs: raw.receivedAtMs, messages })',
    'const [kept, duplicate, denied] = [messages.length, 0, 0]\n    receive(channel, { raw: raw.body, verified, receivedAtMs: raw.receivedAtMs, messages }).catch(() => {})',
    [`${GATEWAY}/http/channel-webhook.test.ts`],
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
    "key: keyOf(ids[index] ?? '')",
    `key: keyOf((ids[index] ?? '') + ${OF_THIS_RUN})`,
    [REPLAYS, DELIVERIES],
  ),
  bug('a message is known without its account', `${STORE}/keep-arrival.ts`, '=> idOf(channel, account, id))\n', '=> idOf(channel, id))\n', [
    STORE_RULES,
    DELIVERIES,
  ]),
  bug(
    'a random value is remembered in memory only (roomchat)',
    `${STORE}/keep-arrival.ts`,
    'idOf(channel, once.value)',
    `idOf(channel, once.value, ${OF_THIS_RUN})`,
    [REPLAYS],
  ),
  bug(
    'a random value is forgotten at once (roomchat)',
    `${GATEWAY}/delivery/ingress.ts`,
    'untilMs: receivedAtMs + ONCE_MS',
    'untilMs: receivedAtMs',
    [REPLAYS],
  ),
  bug(
    'the cap of an account is not kept',
    `${GATEWAY}/delivery/ingress.ts`,
    '> 0 && waiting + more > max_pending',
    '> 0 && waiting + more > max_pending + 1e9',
    [DELIVERIES],
  ),
  bug(
    'an empty allowlist allows everybody',
    'packages/sdk/src/allow.ts',
    "if (list.includes('*'))",
    "if (list.length === 0 || list.includes('*'))",
    [`${GATEWAY}/delivery/allowed-senders.test.ts`],
  ),
  bug(
    'the message of a stranger is kept',
    `${GATEWAY}/delivery/ingress.ts`,
    'senders.admit(channel, sender))',
    'senders.admit(channel, sender) || true)',
    [DELIVERIES],
  ),
  bug(
    'the cursor moves before the mails are handed over (mailpush)',
    'packages/channel-mailpush/src/catch-up.ts',
    '    for (const id of ids) if (!progress.knows(id))',
    '    await progress.moveTo(end, atMs)\n    for (const id of ids) if (!progress.knows(id))',
    ['packages/channel-mailpush/src/interop-mailbox.test.ts'],
  ),
]

const turns = [
  bug(
    'two messages of one session run at once',
    `${GATEWAY}/delivery/work-lanes.ts`,
    'enter({ number, channel, account, lane, atMs, cuts }: Waiting): boolean {',
    'enter({ number, channel, account, lane: session, atMs, cuts }: Waiting): boolean {\n    const lane = session + number',
    [LANES, DELIVERIES],
  ),
  bug(
    'a message that waits for another attempt holds a place',
    `${GATEWAY}/delivery/work-lanes.ts`,
    'const outcome = await this.#attempt(number)\n',
    "const outcome = await this.#attempt(number)\n    if (outcome !== 'done') await this.#options.clock.sleep(outcome.retryAtMs - this.#options.clock.nowMs())\n",
    [LANES],
  ),
  bug(
    'attempts are not counted as they start',
    `${STORE}/start-message.ts`,
    "SET state = 'running', attempts = attempts + 1",
    "SET state = 'running', attempts = attempts",
    [STORE_RULES, DELIVERIES],
  ),
  {
    name: 'a reply is queued after the commit that ends its turn',
    patches: [
      {
        file: `${GATEWAY}/delivery/inbox-runner.ts`,
        find: 'const { replies } = await options.agent.run({',
        replace: 'let later = []\n    await options.agent.run({',
      },
      {
        file: `${GATEWAY}/delivery/inbox-runner.ts`,
        find: 'reply: (answer) => repliesOf(answer, channel, started, clock.nowMs()),',
        replace: 'reply: (answer) => ((later = repliesOf(answer, channel, started, clock.nowMs())), []),',
      },
      {
        file: `${GATEWAY}/delivery/inbox-runner.ts`,
        find: "observe('ok')\n",
        replace: "observe('ok')\n    const replies = await options.store.outbox.add(later)\n",
      },
    ],
    tests: [DELIVERIES],
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
  {
    name: 'a reply that was sent, but could not be noted, is sent again',
    patches: [
      {
        file: `${GATEWAY}/delivery/outbox-runner.ts`,
        find: 'await record(options, number, sent)',
        replace:
          "try {\n    await store.outbox.sent(number, { providerId: sent.id, atMs: clock.nowMs() })\n  } catch {\n    return failed(options, { started, channel, error: new AppError('unavailable', 'not noted'), observe })\n  }",
      },
    ],
    tests: [DELIVERIES],
  },
  bug(
    'a reply that may have been sent is sent again',
    `${GATEWAY}/delivery/outbox-runner.ts`,
    '(UNKNOWN.has(code) && channel.limits.dedupesClientIds === true)',
    'UNKNOWN.has(code)',
    [DELIVERIES],
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
    tests: [STORE_RULES, DELIVERIES],
  },
  bug(
    'a replayed reply has another client id',
    `${STORE}/outbox.ts`,
    "UPDATE outbox SET state = 'queued', attempts = 0, error = NULL, ended_at = NULL WHERE number = ?",
    "UPDATE outbox SET client_id = hex(randomblob(8)), state = 'queued', attempts = 0, error = NULL, ended_at = NULL WHERE number = ?",
    [STORE_RULES],
  ),
  bug(
    'a long reply is split inside a character',
    `${GATEWAY}/delivery/split-text-break.ts`,
    'const whole = startOf(last) || last',
    'const whole = last',
    [`${GATEWAY}/delivery/split-text.test.ts`],
  ),
  bug('a code fence is left open where a reply is split', `${GATEWAY}/delivery/split-text.ts`, "body + (cut?.closing ?? '')", 'body', [
    `${GATEWAY}/delivery/split-text.test.ts`,
  ]),
]

export const MUTANTS = [...proof, ...arrival, ...turns, ...replies]
