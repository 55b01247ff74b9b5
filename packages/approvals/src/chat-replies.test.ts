/** Replies to approvals in chats, through the whole of delivery on a real store. */
import { People } from '@sluice/delivery'
import { AppError, type Channel, type Outbound, ROOMS, roomKey } from '@sluice/sdk'
import { describe, expect, test } from 'vitest'
import { ApprovalRegistry } from './registry.ts'
import { approvalBenches, richChannel } from './testing/approval-bench.ts'

const bench = approvalBenches()

const KEY = { runId: 'run-1', stepId: 'deploy' }

/** A bench with one question, which was sent to `community` unless `question` says otherwise. */
async function asked(options: Parameters<typeof bench>[0] = {}, question: object = {}) {
  const made = await bench(options)
  await made.ask({ channels: ['community'], ...question })
  await made.settle()
  const [prompt] = made.sent
  if (!prompt) throw new Error('no prompt was sent')
  const state = async () => (await made.approvals.get(KEY))?.state
  return { ...made, prompt, state }
}

// WhatsApp over WATI: the API returns an id of its own for a sent message, and a quote names the id of WhatsApp.
test.each([
  ['by other ids than those of sent messages, decides', true, 'approved'],
  ['by the ids of sent messages, decides nothing', undefined, 'pending'],
] as const)('a keyword that quotes an unknown message where quotes name messages %s', async (_, quotesByOtherIds, wanted) => {
  const to = { to: '15550300001' }
  const origin = { channel: 'plain', account: 'bot', to, sender: 'ann' }
  const channels = [{ name: 'plain', ...(quotesByOtherIds && { quotesByOtherIds }) }]
  const { say, state } = await asked({ channels, idOf: (at) => `640c8f${at}` }, { origin, channels: [] })
  await say('plain', { sender: 'ann', to, addressed: 'direct', text: 'approve', inReplyTo: 'wamid.0' })
  expect(await state()).toBe(wanted)
})

test('a keyword that arrives while the platform still answers the request with its prompt decides', async () => {
  const { promise: answered, resolve: answer } = Promise.withResolvers<{ id: string }>()
  const to = { to: '15550300001' }
  const { ask, say, settle, approvals, clock } = await bench({ channels: [richChannel('messenger', { send: () => answered })] })
  await ask({ origin: { channel: 'messenger', account: 'bot', to, sender: 'ann' }, channels: [] })
  await settle()
  const said = say('messenger', { sender: 'ann', to, addressed: 'direct', text: 'approve' })
  await settle()
  expect((await approvals.get(KEY))?.state).toBe('pending')
  answer({ id: '7' })
  await settle()
  await clock.advance(100)
  await said
  expect((await approvals.get(KEY))?.state).toBe('approved')
})

test('a keyword waits at most 2 s for the id of a prompt that is being sent, and not at all for a prompt that waits', async () => {
  const to = { to: '15550300001' }
  const origin = { channel: 'messenger', account: 'bot', to, sender: 'ann' }
  const yes = { sender: 'ann', to, addressed: 'direct', text: 'yes' } as const
  const { promise: answered, resolve: answer } = Promise.withResolvers<{ id: string }>()
  const slow = await bench({ channels: [richChannel('messenger', { send: () => answered })] })
  await slow.ask({ origin, channels: [] })
  await slow.settle()
  const askedAtMs = slow.clock.nowMs()
  let hasEnded = false
  const said = slow.say('messenger', yes).then(() => {
    hasEnded = true
  })
  while (!hasEnded && slow.clock.nowMs() < askedAtMs + 10_000) {
    await slow.settle()
    await slow.clock.advance(50)
  }
  expect(slow.clock.nowMs() - askedAtMs).toBeLessThanOrEqual(2500)
  await said
  expect((await slow.approvals.get(KEY))?.state).toBe('pending')
  answer({ id: '7' })
  let refusals = 0
  const refuses = async () => {
    if (refusals++ === 0) throw new AppError('rate_limited', 'slow down', { retryAfterSecs: 60 })
    return { id: '7' }
  }
  const later = await bench({ channels: [richChannel('messenger', { send: refuses })] })
  await later.ask({ origin, channels: [] })
  await later.settle()
  await later.clock.advance(5000)
  const sleeping = later.clock.sleeping
  await later.say('messenger', yes)
  expect(later.clock.sleeping).toBe(sleeping)
  await later.clock.advance(60_000)
  await later.settle()
  expect((await later.approvals.get(KEY))?.state).toBe('pending')
})

test('an ordinary message visits approvals once, and its reply never', async () => {
  const { say, approvals, subscribed, turns, sent } = await bench()
  const visits: string[] = []
  for (const member of ['matchReply', 'handleReply', 'current', 'look'] as const) {
    const original: (...args: never[]) => unknown = approvals[member]
    Object.defineProperty(approvals, member, {
      value: (...args: never[]) => {
        visits.push(member)
        return original.apply(approvals, args)
      },
    })
  }
  expect(subscribed()).toBe(0)
  await say('community', { text: 'hello' })
  expect({ visits, turns: turns.length, sent: sent.length }).toEqual({ visits: ['matchReply'], turns: 1, sent: 1 })
})

test('listens to events from the first open approval to the last decision', async () => {
  const { ask, approvals, settle, subscribed } = await bench()
  expect(subscribed()).toBe(0)
  await ask()
  await ask({ stepId: 'other' })
  expect(subscribed()).toBe(1)
  for (const stepId of ['deploy', 'other'])
    await approvals.decide({ ...KEY, stepId }, { state: 'approved', by: 'device:d1', who: { standing: 'listed', isAsked: true } })
  await settle()
  expect(subscribed()).toBe(0)
})

describe('a reply that matches resolves the approval', () => {
  test('the prompt names the keywords, has buttons and opens a thread', async () => {
    const { prompt } = await asked()
    expect(prompt.to).toEqual({ to: 'ops' })
    expect(prompt.text).toBe(
      'Deploy 1.2?\n\nAll tests pass.\n\nReply with one of: `approve`, `approved`, `yes`, `lgtm` to approve. Reply with `reject` <your feedback> to reject (or `rejected`, `no`).',
    )
    expect(prompt.buttons?.map(({ label, tone }) => [label, tone])).toEqual([
      ['Approve', 'good'],
      ['Reject', 'bad'],
    ])
    expect(prompt.topic).toBe('Approval: release')
  })

  test.each([
    ['as a quote', { to: { to: 'ops' }, inReplyTo: '1' }],
    ['in its thread', { to: { to: 'ops', thread: '1' } }],
    ['in a thread that is a conversation of its own', { to: { to: '1' } }],
  ])('%s, with a keyword and feedback, and starts no turn', async (_, where) => {
    const { say, approvals, turns, sent, prompt, events } = await asked()
    await say('community', { ...where, sender: 'ann', text: ' Reject  the tests\nare red ' })
    expect(await approvals.get(KEY)).toMatchObject({
      state: 'rejected',
      by: 'community:ann',
      feedback: 'the tests\nare red',
      acknowledgedAtMs: expect.any(Number),
    })
    expect(turns).toEqual([])
    expect(events()).toEqual(['human_approval_request', 'human_approval_resolved'])
    expect(sent.slice(1)).toMatchObject([
      { to: { to: 'ops', thread: prompt.id }, text: 'Rejected by community:ann: the tests\nare red', isEdit: false },
      { id: prompt.id, isEdit: true, text: expect.stringContaining('Rejected by community:ann') },
    ])
    expect(sent[2]).not.toHaveProperty('buttons')
    expect(sent[2]?.text).not.toContain('Reply with')
  })

  test.each([
    ['community', { to: 'ops', thread: '1' }],
    ['workspace', { to: 'ops', thread: '1' }],
    ['messenger', { to: 'ops', replyTo: '1' }],
  ] as const)('and is confirmed in the thread of the prompt or as a reply to it: %s', async (target, to) => {
    const { say, sent } = await asked({ channels: [richChannel(target)] }, { channels: [target] })
    await say(target, { inReplyTo: '1', text: 'yes' })
    expect(sent[1]).toMatchObject({ to, text: `Approved by ${target}:ann` })
  })

  test('and is confirmed as a reply to the prompt in the origin, where no thread is opened', async () => {
    const origin = { channel: 'community', account: 'bot', to: { to: 'lounge', replyTo: 'm7' } }
    const { say, sent, prompt } = await asked({}, { origin, channels: [] })
    expect(prompt).toMatchObject({ to: { to: 'lounge', replyTo: 'm7' }, buttons: [{}, {}] })
    expect(prompt).not.toHaveProperty('topic')
    await say('community', { to: { to: 'lounge' }, inReplyTo: '1', text: 'yes' })
    expect(sent[1]?.to).toEqual({ to: 'lounge', replyTo: '1' })
  })

  test('in a thread that is older than the prompt, if it is a keyword alone', async () => {
    const origin = { channel: 'workspace', account: 'bot', to: { to: 'lounge', thread: 't' } }
    const { say, state, turns } = await asked({ channels: [richChannel('workspace')] }, { origin, channels: [] })
    await say('workspace', { to: { to: 'lounge', thread: 't' }, text: 'no idea' })
    await say('workspace', { to: { to: 'lounge', thread: 'u' }, text: 'no' })
    expect(await state()).toBe('pending')
    expect(turns).toHaveLength(2)
    await say('workspace', { to: { to: 'lounge', thread: 't' }, text: 'no' })
    expect(await state()).toBe('rejected')
  })

  test('in a thread that is older than the prompt, if it is `reject` with a reason', async () => {
    const origin = { channel: 'workspace', account: 'bot', to: { to: 'lounge', thread: 't' } }
    const { say, state, approvals } = await asked({ channels: [richChannel('workspace')] }, { origin, channels: [] })
    await say('workspace', { to: { to: 'lounge', thread: 't' }, text: 'approve what?' })
    expect(await state()).toBe('pending')
    await say('workspace', { to: { to: 'lounge', thread: 't' }, text: 'reject too risky today' })
    expect(await approvals.get(KEY)).toMatchObject({ state: 'rejected', feedback: 'too risky today' })
  })

  test('in the typed words of the sender, where the text has more', async () => {
    const { say, approvals, turns } = await asked()
    const reply = { to: { to: 'ops' }, inReplyTo: '1', sender: 'ann' }
    await say('community', { ...reply, text: 'yes', typed: 'why?' })
    expect(await approvals.get(KEY)).toMatchObject({ state: 'pending' })
    expect(turns).toHaveLength(1)
    await say('community', { ...reply, text: 'Subject: Re: Deploy\n\nreject too risky\n\n> Deploy 1.2?', typed: 'reject too risky' })
    expect(await approvals.get(KEY)).toMatchObject({ state: 'rejected', feedback: 'too risky' })
  })

  test('by a message id that contains the conversation', async () => {
    const options = { channels: [richChannel('messenger')], idOf: () => '-100:5' }
    const { say, state } = await asked(options, { channels: ['messenger'] })
    await say('messenger', { to: { to: '-200' }, inReplyTo: '-100:5', text: 'yes' })
    expect(await state()).toBe('pending')
    await say('messenger', { to: { to: '-100' }, inReplyTo: '-100:5', text: 'yes' })
    expect(await state()).toBe('approved')
  })

  test('by a button', async () => {
    const { say, approvals, prompt, store } = await asked()
    await say('community', { pressed: { message: '1', value: prompt.buttons?.[0]?.value ?? '' } })
    expect(await approvals.get(KEY)).toMatchObject({ state: 'approved', by: 'community:ann', feedback: null })
    expect(await store.inbox.list({ limit: 9 })).toMatchObject([{ state: 'done', turnId: expect.anything() }])
  })

  test('by a button on a platform that does not name the message with the button', async () => {
    const { say, approvals, prompt } = await asked()
    await say('community', { pressed: { message: '', value: prompt.buttons?.[1]?.value ?? '' } })
    expect(await approvals.get(KEY)).toMatchObject({ state: 'rejected', by: 'community:ann' })
  })

  test('by the keywords of the question instead of the default list', async () => {
    const { say, state } = await asked({}, { approveKeywords: [' Ship It '] })
    await say('community', { inReplyTo: '1', text: 'yes' })
    expect(await state()).toBe('pending')
    await say('community', { inReplyTo: '1', text: 'SHIP it' })
    expect(await state()).toBe('approved')
  })
})

describe('an approval is not resolved by', () => {
  test.each([
    ['another text in the conversation', { text: 'yes' }],
    ['a text that begins with the letters of a keyword', { inReplyTo: '1', text: 'yesterday it was red' }],
    ['a text in another thread', { to: { to: 'ops', thread: '7' }, text: 'yes' }],
    ['a reply to another message', { inReplyTo: '7', text: 'yes' }],
    ['the same message id in another conversation', { to: { to: 'lounge' }, inReplyTo: '1', text: 'yes' }],
    ['the same thread id in another conversation', { to: { to: 'lounge', thread: '1' }, text: 'yes' }],
    ['a message to another account', { account: 'other-bot', inReplyTo: '1', text: 'yes' }],
    ['a text that contains a keyword', { inReplyTo: '1', text: 'who says yes?' }],
  ])('%s', async (_, message) => {
    const { say, state, turns } = await asked()
    await say('community', message)
    expect(await state()).toBe('pending')
    expect(turns).toHaveLength(1)
  })

  test('the same ids on another platform', async () => {
    const { say, state } = await asked({ channels: [richChannel('community'), richChannel('workspace')] })
    await say('workspace', { inReplyTo: '1', text: 'yes' })
    expect(await state()).toBe('pending')
  })

  test('a sender that is not allowed, by text or by button', async () => {
    const { say, state, turns, prompt, store } = await asked({ channels: [richChannel('community', { allow: ['ann'] })] })
    await say('community', { sender: 'mallory', inReplyTo: '1', text: 'yes' })
    await say('community', { sender: 'mallory', pressed: { message: '1', value: prompt.buttons?.[0]?.value ?? '' } })
    expect(await state()).toBe('pending')
    expect(turns).toEqual([])
    expect(await store.inbox.list({ limit: 9 })).toEqual([])
  })

  test.each([
    ['a sender whom only * admits', { sender: 'eve' }],
    ['a sender who proves no identity', { sender: 'ann', unverified: true }],
  ] as const)('%s, by text, button or thread; the sender gets a notice', async (_, who) => {
    const { say, state, turns, prompt, sent } = await asked()
    await say('community', { ...who, inReplyTo: '1', text: 'yes' })
    await say('community', { ...who, to: { to: 'ops', thread: '1' }, text: 'no' })
    await say('community', { ...who, pressed: { message: '1', value: prompt.buttons?.[0]?.value ?? '' } })
    expect(await state()).toBe('pending')
    expect(turns).toEqual([])
    expect(sent.slice(1).map(({ text }) => text)).toEqual(Array(3).fill('You cannot decide this. An operator decides it.'))
  })

  test.each([
    ['a channel that verifies no request', { channels: [richChannel('community', { webhook: { unsigned: 'secret' } as never })] }, {}],
    ['a sender who stands lower than the turn', {}, { standing: 'operator' }],
    ['the source of untrusted text before the call', {}, { sources: ['message from ann on community'] }],
    ['a listed sender, where an operator decides', {}, { decider: 'operator' }],
  ])('%s', async (_, options, question) => {
    const { say, state } = await asked(options, question)
    await say('community', { inReplyTo: '1', text: 'yes' })
    expect(await state()).toBe('pending')
  })

  test.each([
    ['for which its operator account counts only after both confirm', 'pending', {}, []],
    ['with the standing of its operator account after both confirm', 'approved', {}, ['community:ann', 'workspace:boss']],
    ['of the source of untrusted text', 'pending', { sources: ['message from boss on workspace'] }, ['community:ann', 'workspace:boss']],
  ])('a linked account, %s: %s', async (_, wanted, question, confirming) => {
    const channels = [richChannel('community'), richChannel('workspace', { allow: ['boss'] })]
    const { say, state, people } = await asked({ channels, operators: ['boss'] }, { decider: 'operator', ...question })
    const accounts = { 'community:ann': 'channel:community/bot/ann', 'workspace:boss': 'channel:workspace/bot/boss' }
    const { code } = await people.newCode({ account: accounts['workspace:boss'], by: 'workspace:boss' })
    await people.redeem({ account: accounts['community:ann'], by: 'community:ann' }, code)
    for (const by of confirming) await people.confirm({ account: accounts[by as keyof typeof accounts], by })
    await say('community', { inReplyTo: '1', text: 'yes' })
    expect(await state()).toBe(wanted)
  })

  test.each([
    ['an unknown token', { message: '1', value: 'a.AAAAAAAAAAAAAAAA' }],
    ['no token', { message: '1', value: 'approve' }],
    ['no value', { message: '1', value: '' }],
  ])('a button with %s, which gets an answer and starts no turn', async (_, pressed) => {
    const { say, state, turns, sent, store } = await asked()
    await say('community', { pressed })
    expect(await state()).toBe('pending')
    expect(turns).toEqual([])
    expect(sent.at(-1)?.text).toBe('This answers nothing that is still open.')
    expect(await store.inbox.list({ limit: 9 })).toMatchObject([{ state: 'done' }])
  })

  test.each([
    ['under another message', { pressed: { message: '7' } }],
    ['in another conversation', { to: { to: 'lounge' }, pressed: { message: '1' } }],
    ['in another conversation, where the message is not named', { to: { to: 'lounge' }, pressed: { message: '' } }],
    ['of another account', { account: 'other-bot', pressed: { message: '1' } }],
  ])('the right token %s', async (_, { pressed, ...where }) => {
    const { say, state, prompt } = await asked()
    await say('community', { ...where, pressed: { ...pressed, value: prompt.buttons?.[0]?.value ?? '' } })
    expect(await state()).toBe('pending')
  })
})

describe('a question about the call of one person in a room', () => {
  const origin = { channel: 'workspace', account: 'bot', to: { to: 'lounge', thread: 't' }, sender: 'ann' }
  const allow = ['ann', 'bob', 'boss']
  const ofAnn = (options: object = {}) =>
    asked({ channels: [richChannel('workspace', { allow })], operators: ['boss'], ...options }, { origin, channels: [] })
  const inRoom = { to: { to: 'lounge', thread: 't' }, addressed: 'overheard' } as const
  const quoted = { ...inRoom, inReplyTo: '1', text: 'approve' }

  test.each([
    ['a quote', quoted],
    ['a button', undefined],
  ])('is decided by this person and by operators, and by no other listed person: %s', async (_, given) => {
    for (const [sender, wanted] of [
      ['bob', 'pending'],
      ['ann', 'approved'],
      ['boss', 'approved'],
    ] as const) {
      const { say, state, sent, prompt } = await ofAnn()
      await say('workspace', {
        sender,
        ...(given ?? { to: inRoom.to, pressed: { message: '1', value: prompt.buttons?.[0]?.value ?? '' } }),
      })
      expect([sender, await state()]).toEqual([sender, wanted])
      if (sender === 'bob')
        expect(sent.at(-1)?.text).toBe('You cannot decide this. The person who asked for it, or an operator, decides it.')
    }
  })

  test('is not answered by a keyword alone of another person in its thread, which stays conversation and gets no hint', async () => {
    const { say, state, sent, turns } = await ofAnn()
    await say('workspace', { ...inRoom, sender: 'bob', text: 'no' })
    expect([await state(), turns.length]).toEqual(['pending', 1])
    expect(sent.map(({ text }) => text).filter((text) => /question waits|cannot decide/.test(text))).toEqual([])
    await say('workspace', { ...inRoom, sender: 'ann', text: 'no' })
    expect(await state()).toBe('rejected')
  })

  test('is decided by a linked account of this person', async () => {
    const { say, state, people } = await ofAnn()
    const account = (sender: string) => ({ account: `channel:workspace/bot/${sender}`, by: `workspace:${sender}` })
    const { code } = await people.newCode(account('ann'))
    await people.redeem(account('bob'), code)
    await say('workspace', { ...quoted, sender: 'bob' })
    expect(await state()).toBe('approved')
  })

  test('is not decided by a person whom the rule of the room leaves out, except an operator', async () => {
    for (const rule of [{ people: ['bob'] }, { respond: 'never' }] as const) {
      const { say, state, sent, prompt, store } = await ofAnn()
      await store.keyValue(ROOMS).set(roomKey({ channel: 'workspace', account: 'bot', conversation: 'lounge' }), rule)
      const before = sent.length
      const press = { to: inRoom.to, pressed: { message: '1', value: prompt.buttons?.[0]?.value ?? '' } }
      await say('workspace', { ...quoted, sender: 'ann' })
      await say('workspace', { ...press, sender: 'ann' })
      expect([await state(), sent.length, (await store.inbox.list({ limit: 9 })).length]).toEqual(['pending', before, 0])
      await say('workspace', { ...press, sender: 'boss' })
      expect(await state()).toBe('approved')
    }
  })

  test('a named person still decides in a conversation of [approvals] channels whose room answers no one', async () => {
    const { say, approvals, store } = await asked(
      { channels: [richChannel('workspace', { allow })], targets: ['workspace'] },
      { channels: ['workspace'] },
    )
    await store.keyValue(ROOMS).set(roomKey({ channel: 'workspace', account: 'bot', conversation: 'ops' }), { respond: 'never' })
    await say('workspace', { sender: 'bob', addressed: 'overheard', inReplyTo: '1', text: 'yes' })
    expect(await approvals.get(KEY)).toMatchObject({ state: 'approved', byStanding: 'operator' })
  })
})

test.each([
  ['a sender of [channels_config.<channel>] operators', { operators: ['ann'] }],
  ['a named sender in a conversation of [approvals] channels', { targets: ['community'] }],
])('%s decides as an operator', async (_, options) => {
  const { say, approvals } = await asked(options, { decider: 'operator', standing: 'listed' })
  await say('community', { sender: 'eve', inReplyTo: '1', text: 'yes' })
  expect(await approvals.get(KEY)).toMatchObject({ state: 'pending' })
  await say('community', { inReplyTo: '1', text: 'yes' })
  expect(await approvals.get(KEY)).toMatchObject({ state: 'approved', by: 'community:ann', byStanding: 'operator' })
})

describe('the first decision wins', () => {
  test('and later replies and buttons get the decision as an answer', async () => {
    const { say, state, sent, prompt, turns, events } = await asked()
    await say('community', { inReplyTo: '1', text: 'lgtm' })
    await say('community', { sender: 'bob', inReplyTo: '1', text: 'no way' })
    expect(sent.at(-1)).toMatchObject({ text: 'Already approved by community:ann', to: { to: 'ops' } })
    await say('community', { sender: 'bob', pressed: { message: '1', value: prompt.buttons?.[1]?.value ?? '' } })
    expect(sent.at(-1)?.text).toBe('Already approved by community:ann')
    expect(await state()).toBe('approved')
    expect(turns).toEqual([])
    expect(events().filter((type) => type === 'human_approval_resolved')).toHaveLength(1)
  })

  test('of two at the same time', async () => {
    const { approvals, say, sent, events, settle } = await asked()
    const [one, two] = await Promise.all([
      approvals.decide(KEY, { state: 'approved', by: 'device:d1', who: { standing: 'listed', isAsked: true } }),
      approvals.decide(KEY, { state: 'rejected', by: 'device:d2', who: { standing: 'listed', isAsked: true } }),
      say('community', { inReplyTo: '1', text: 'no' }),
    ])
    expect([one.won, two.won]).toEqual([true, false])
    await settle()
    expect(await approvals.get(KEY)).toMatchObject({ state: 'approved', by: 'device:d1' })
    expect(events().filter((type) => type === 'human_approval_resolved')).toHaveLength(1)
    expect(sent.filter(({ text }) => text.startsWith('Approved by'))).toHaveLength(1)
  })
})

test('a timeout expires the approval, which the prompt and its thread show', async () => {
  const { approvals, clock, sent, say, settle } = await asked({}, { timeoutSecs: 90 })
  await clock.advance(89_999)
  expect(await approvals.get(KEY)).toMatchObject({ state: 'pending' })
  await clock.advance(1)
  await settle()
  expect(await approvals.get(KEY)).toMatchObject({ state: 'expired', by: 'timeout', feedback: null })
  expect(sent[1]?.text).toBe('Expired: no answer in time')
  await say('community', { inReplyTo: '1', text: 'yes' })
  expect(sent.at(-1)?.text).toBe('Already expired: no answer in time')
  expect(await approvals.get(KEY)).toMatchObject({ state: 'expired' })
})

test('a prompt that is sent after the decision shows the decision', async () => {
  let isDown = true
  const send: Channel['send'] = async (_to, outbound) => {
    if (isDown) throw new AppError('unavailable', 'not now', { retryAfterSecs: 60 })
    late.push(outbound)
    return { id: 'late' }
  }
  const late: Outbound[] = []
  const { ask, say, clock, settle, approvals } = await bench({ channels: [richChannel('community'), richChannel('workspace', { send })] })
  await ask({ channels: ['community', 'workspace'] })
  await settle()
  await say('community', { inReplyTo: '1', text: 'yes' })
  expect(await approvals.get(KEY)).toMatchObject({ state: 'approved' })
  isDown = false
  await clock.advance(120_000)
  await settle()
  expect(late).toEqual([
    { text: 'Deploy 1.2?\n\nAll tests pass.\n\nApproved by community:ann', clientId: expect.any(String) },
    { text: 'Approved by community:ann', clientId: expect.any(String) },
  ])
})

describe('after a restart', () => {
  test('an open approval can be answered', async () => {
    const first = await asked({}, { timeoutSecs: 3600 })
    await first.stop()
    const { say, approvals, clock, sent } = await bench({ folder: first.folder, clock: first.clock })
    expect(sent).toEqual([])
    await say('community', { inReplyTo: '1', text: 'yes' })
    expect(await approvals.get(KEY)).toMatchObject({ state: 'approved' })
    await clock.advance(3_600_000)
    expect(await approvals.get(KEY)).toMatchObject({ state: 'approved' })
  })

  test('an approval expires if it was due while the daemon was down', async () => {
    const first = await asked({}, { timeoutSecs: 60 })
    await first.stop()
    await first.clock.advance(120_000)
    const { approvals, clock, settle } = await bench({ folder: first.folder, clock: first.clock })
    await clock.advance(1)
    await settle()
    expect(await approvals.get(KEY)).toMatchObject({ state: 'expired' })
  })

  test('a decision that its gate had not acknowledged is dispatched again', async () => {
    const first = await asked({}, { gate: 'sop' })
    await first.approvals.decide(KEY, { state: 'approved', by: 'device:d1', who: { standing: 'listed', isAsked: true } })
    await first.settle()
    expect(await first.approvals.get(KEY)).toMatchObject({ state: 'approved', acknowledgedAtMs: null })
    expect(first.events()).toEqual(['human_approval_request'])
    await first.stop()
    const { approvals, events, sent, settle } = await bench({ folder: first.folder, clock: first.clock })
    const taken: string[] = []
    approvals.onDecision('sop', async ({ state }) => void taken.push(state))
    await settle()
    expect(taken).toEqual(['approved'])
    expect(events()).toEqual(['human_approval_resolved'])
    expect(sent.map(({ text }) => text)).toContain('Approved by device:d1')
  })

  test('the confirmation names the device that decided', async () => {
    const { approvals, store, clock, sent, settle } = await asked({}, { gate: 'sop' })
    const device = { id: 'd1', name: "Anna's phone", role: 'operator', createdAtMs: clock.nowMs(), expiresAtMs: null } as const
    await store.devices.add({ ...device, tokenHash: 'a'.repeat(64) })
    approvals.onDecision('sop', async () => {})
    await approvals.decide(KEY, { state: 'approved', by: 'device:d1', who: { standing: 'operator', isAsked: false } })
    await settle()
    expect(sent.map(({ text }) => text)).toContain('Approved by device "Anna\'s phone"')
    expect(await approvals.get(KEY)).toMatchObject({ by: 'device:d1' })
  })

  test('a decision of another process is found by look', async () => {
    const { approvals, store, clock, events, settle } = await asked()
    await store.approvals.decide(KEY, { state: 'rejected', by: 'cli:ops', feedback: 'later', atMs: clock.nowMs() })
    expect(events()).toEqual(['human_approval_request'])
    await approvals.look()
    await settle()
    expect(events()).toEqual(['human_approval_request', 'human_approval_resolved'])
    expect(await approvals.get(KEY)).toMatchObject({ state: 'rejected', acknowledgedAtMs: expect.any(Number) })
  })
})

describe('the confirmation is sent after the gate has acknowledged the decision', () => {
  test('and a gate that fails is called again', async () => {
    const { approvals, clock, sent, events, settle } = await asked({}, { gate: 'sop' })
    let calls = 0
    approvals.onDecision('sop', async () => {
      calls += 1
      if (calls < 3) throw new Error('not now')
    })
    await approvals.decide(KEY, { state: 'approved', by: 'device:d1', who: { standing: 'listed', isAsked: true } })
    await settle()
    expect([calls, sent.length, events().length]).toEqual([1, 1, 1])
    for (let minute = 0; minute < 5; minute++) {
      await clock.advance(60_000)
      await settle()
    }
    expect(calls).toBe(3)
    expect(events()).toEqual(['human_approval_request', 'human_approval_resolved'])
    expect(sent[1]?.text).toBe('Approved by device:d1')
  })
})

describe('in a conversation with one person', () => {
  const rich = { channels: [richChannel('messenger')] }
  const origin = { channel: 'messenger', account: 'bot', to: { to: 'ann' }, sender: 'ann' }
  const direct = { to: { to: 'ann' }, addressed: 'direct' } as const

  test('a keyword alone decides the only open question', async () => {
    const { say, state } = await asked(rich, { origin, channels: [] })
    await say('messenger', { ...direct, text: 'approve what?' })
    await say('messenger', { ...direct, inReplyTo: 'another', text: 'approve' })
    await say('messenger', { to: { to: 'ann' }, addressed: 'overheard', text: 'approve' })
    expect(await state()).toBe('pending')
    await say('messenger', { ...direct, text: 'approve' })
    expect(await state()).toBe('approved')
  })

  describe('of an operator who is asked about the call of another person', () => {
    const room = { channel: 'messenger', account: 'bot', to: { to: 'room' }, sender: 'bob' }
    const ofBob = { origin: room, channels: ['messenger:ann'], decider: 'operator', person: 'bob' }
    const operator = { ...rich, operators: ['ann'] }

    test.each([
      ['approve', 'approved'],
      ['reject', 'rejected'],
      ['reject too risky', 'rejected'],
    ])('`%s` without a quote decides', async (text, wanted) => {
      const { say, state, turns } = await asked(operator, ofBob)
      await say('messenger', { ...direct, text })
      expect(await state()).toBe(wanted)
      expect(turns).toEqual([])
    })

    test('a word that may answer the agent decides nothing and is answered once with the words that decide', async () => {
      const { say, state, sent, turns } = await asked(operator, ofBob)
      await say('messenger', { ...direct, text: 'yes' })
      await say('messenger', { ...direct, text: 'no' })
      expect(await state()).toBe('pending')
      expect(turns).toHaveLength(2)
      expect(sent.flatMap(({ text }) => (text.includes('for your answer') ? [text] : []))).toEqual([
        'A question waits for your answer: “Deploy 1.2?” Reply with `approve` or `reject`.',
      ])
    })

    test('a keyword of a sender who may not decide starts a turn', async () => {
      const { say, state, turns, sent } = await asked({ ...rich, operators: [], targets: [] }, ofBob)
      await say('messenger', { ...direct, text: 'approve' })
      expect(await state()).toBe('pending')
      expect(turns).toHaveLength(1)
      expect(sent.filter(({ text }) => text.includes('for your answer'))).toEqual([])
    })

    test('with several open questions, a keyword is answered with a hint and decides none', async () => {
      const { say, ask, settle, state, sent, turns } = await asked(operator, ofBob)
      await ask({ stepId: 'second', ...ofBob } as never)
      await settle()
      await say('messenger', { ...direct, text: 'what is new?' })
      await say('messenger', { ...direct, text: 'reject' })
      expect(await state()).toBe('pending')
      expect(turns).toHaveLength(2)
      expect(sent.flatMap(({ text }) => (text.includes('for your answer') ? [text] : []))).toEqual([
        '2 questions wait for your answer. Reply to the message of the one that you mean.',
      ])
    })

    test('a keyword decides none of two questions, also where the sender may decide only one, and is answered with a hint', async () => {
      const { say, ask, settle, state, approvals, sent } = await asked(operator, ofBob)
      await ask({ stepId: 'second', ...ofBob, sources: ['message from ann on messenger'] } as never)
      await settle()
      await say('messenger', { ...direct, text: 'approve' })
      expect([await state(), (await approvals.get({ ...KEY, stepId: 'second' }))?.state]).toEqual(['pending', 'pending'])
      expect(sent.filter(({ text }) => text.startsWith('2 questions wait'))).toHaveLength(1)
      const prompt = sent.find(({ to }) => to.to === 'ann')
      await say('messenger', { ...direct, inReplyTo: prompt?.id ?? '', text: 'approve' })
      expect([await state(), (await approvals.get({ ...KEY, stepId: 'second' }))?.state]).toEqual(['approved', 'pending'])
    })

    test('a keyword that was written before the prompt was sent decides nothing, also where it arrives later', async () => {
      let isDown = true
      const send = async () => {
        if (isDown) throw new AppError('unavailable', 'down')
        return { id: 'p1' }
      }
      const made = await bench({ ...operator, channels: [richChannel('messenger', { send })] })
      const { clock, ask, settle, say, approvals } = made
      await ask(ofBob as never)
      await settle()
      const state = async () => (await approvals.get(KEY))?.state
      const writtenAtMs = clock.nowMs()
      await clock.advance(30_000)
      isDown = false
      for (let minute = 0; minute < 10; minute++) {
        await clock.advance(60_000)
        await settle()
      }
      expect((await approvals.get(KEY))?.prompts.map(({ providerId }) => providerId)).toEqual(['p1', 'p1'])
      await say('messenger', { ...direct, text: 'approve', sentAtMs: writtenAtMs })
      expect(await state()).toBe('pending')
      await say('messenger', { ...direct, text: 'approve', sentAtMs: clock.nowMs() - 1000 })
      expect(await state()).toBe('approved')
    })
  })

  test('forwarded words decide nothing', async () => {
    const { say, state } = await asked(rich, { origin, channels: [] })
    await say('messenger', { ...direct, text: '', forwarded: { text: 'approve' } })
    expect(await state()).toBe('pending')
  })

  test('another text is answered once with the open question', async () => {
    const { say, sent } = await asked(rich, { origin, channels: [] })
    await say('messenger', { ...direct, text: 'wait, what does it delete?' })
    await say('messenger', { ...direct, text: 'and why?' })
    const hints = sent.filter(({ text }) => text.startsWith('A question waits'))
    expect(hints.map(({ text }) => text)).toEqual([
      'A question waits for your answer: “Deploy 1.2?” Reply with `approve` or `reject`. Your message is answered after that.',
    ])
  })

  test.each([
    ['approve', 'approved'],
    ['reject later', 'rejected'],
  ])('`%s` in a reply to the hint decides', async (text, wanted) => {
    const { say, sent, state, turns } = await asked(rich, { origin, channels: [] })
    await say('messenger', { ...direct, text: 'wait, what does it delete?' })
    const hint = sent.find((message) => message.text.startsWith('A question waits'))
    await say('messenger', { ...direct, inReplyTo: hint?.id ?? '', text })
    expect(await state()).toBe(wanted)
    expect(turns).toHaveLength(1)
  })

  test('a keyword in a reply to the hint decides also after 200 further messages', async () => {
    const { say, sent, state, store } = await asked(rich, { origin, channels: [] })
    await say('messenger', { ...direct, text: 'wait, what does it delete?' })
    const hint = sent.find((message) => message.text.startsWith('A question waits'))
    const further = { channel: 'messenger', account: 'bot', to: { to: 'zoe' }, part: 1, parts: 1, turnId: null, createdAtMs: 0 }
    const numbers = await store.outbox.add(Array.from({ length: 201 }, (_, at) => ({ ...further, text: 'x', clientId: `further-${at}` })))
    for (const number of numbers) {
      await store.outbox.start(number)
      await store.outbox.sent(number, { providerId: `further-${number}`, atMs: 1 })
    }
    await say('messenger', { ...direct, inReplyTo: hint?.id ?? '', text: 'approve' })
    expect(await state()).toBe('approved')
  })

  test('a keyword in a reply to an answer of the agent decides nothing', async () => {
    const { say, sent, state } = await asked(rich, { origin, channels: [] })
    await say('messenger', { ...direct, text: 'wait, what does it delete?' })
    const answer = sent.find((message) => !/question waits|Deploy/.test(message.text))
    await say('messenger', { ...direct, inReplyTo: answer?.id ?? '7', text: 'approve' })
    expect(await state()).toBe('pending')
  })

  test('a reply to the hint of a decided question decides no later question with the same title', async () => {
    const { say, sent, ask, settle, approvals } = await asked(rich, { origin, channels: [] })
    await say('messenger', { ...direct, text: 'wait, what does it delete?' })
    const hint = sent.find((message) => message.text.startsWith('A question waits'))
    await approvals.decide(KEY, { state: 'rejected', by: 'device:d1', who: { standing: 'operator', isAsked: true } })
    await ask({ stepId: 'second', origin, channels: [] })
    await settle()
    await say('messenger', { ...direct, inReplyTo: hint?.id ?? '', text: 'approve' })
    expect((await approvals.get({ ...KEY, stepId: 'second' }))?.state).toBe('pending')
  })

  test('a reply to the hint of one of two questions with the same title decides this one', async () => {
    const { say, sent, ask, settle, state, approvals } = await asked(rich, { origin, channels: [] })
    await say('messenger', { ...direct, text: 'wait, what does it delete?' })
    const hint = sent.find((message) => message.text.startsWith('A question waits'))
    await ask({ stepId: 'second', origin, channels: [] })
    await settle()
    await say('messenger', { ...direct, inReplyTo: hint?.id ?? '', text: 'approve' })
    expect([await state(), (await approvals.get({ ...KEY, stepId: 'second' }))?.state]).toEqual(['approved', 'pending'])
  })

  test('a keyword in a reply to a message with the number of a hint in another conversation decides nothing', async () => {
    const { say, sent, ask, settle, state } = await asked(rich, { origin, channels: [] })
    const other = { ...direct, sender: 'bob', to: { to: 'bob' } }
    await ask({ stepId: 'second', origin: { ...origin, to: other.to, sender: 'bob' }, channels: [] })
    await settle()
    await say('messenger', { ...other, text: 'wait, what does it delete?' })
    const hint = sent.find((message) => message.text.startsWith('A question waits'))
    expect(hint?.to.to).toBe('bob')
    await say('messenger', { ...direct, inReplyTo: hint?.id ?? '', text: 'approve' })
    expect(await state()).toBe('pending')
  })

  test('a keyword in a reply to an answer with the first letters of a hint decides nothing', async () => {
    const { say, sent, ask, settle, approvals } = await bench({ ...rich, turn: () => 'A' })
    await say('messenger', { ...direct, text: 'A or B?' })
    const answer = sent.find((message) => message.text === 'A')
    await ask({ origin, channels: [] })
    await settle()
    await say('messenger', { ...direct, inReplyTo: answer?.id ?? 'none', text: 'yes' })
    expect((await approvals.get(KEY))?.state).toBe('pending')
  })

  test('a keyword that quotes a message which is not known is answered with the open question', async () => {
    const { say, sent, state } = await asked(rich, { origin, channels: [] })
    await say('messenger', { ...direct, inReplyTo: 'lost in a crash', text: 'approve' })
    expect(await state()).toBe('pending')
    expect(sent.filter(({ text }) => text.startsWith('A question waits'))).toHaveLength(1)
  })
})

describe('on a platform without quotes', () => {
  const plain = { channels: [{ name: 'plain' }] }
  const origin = { channel: 'plain', account: 'bot', to: { to: 'room' }, sender: 'ann' }
  const inRoom = { to: { to: 'room' } }

  test('a keyword alone from the person whom the question concerns decides', async () => {
    const { say, state, turns, sent } = await asked(plain, { origin, channels: [] })
    await say('plain', { ...inRoom, text: 'yes please' })
    await say('plain', { ...inRoom, sender: 'bob', text: 'yes' })
    await say('plain', { to: { to: 'lounge' }, text: 'yes' })
    expect(await state()).toBe('pending')
    expect(turns).toHaveLength(3)
    await say('plain', { ...inRoom, text: 'Yes' })
    expect(await state()).toBe('approved')
    expect(turns).toHaveLength(3)
    expect(sent.at(-1)).toMatchObject({ to: { to: 'room' }, text: 'Approved by plain:ann' })
  })

  test('a rejection with a reason from that person decides', async () => {
    const { say, approvals } = await asked(plain, { origin, channels: [] })
    await say('plain', { ...inRoom, sender: 'bob', text: 'reject it' })
    await say('plain', { ...inRoom, text: 'no idea' })
    expect(await approvals.get(KEY)).toMatchObject({ state: 'pending' })
    await say('plain', { ...inRoom, text: 'Reject the tests are red' })
    expect(await approvals.get(KEY)).toMatchObject({ state: 'rejected', by: 'plain:ann', feedback: 'the tests are red' })
  })

  test('a keyword decides nothing while two approvals are open in the conversation', async () => {
    const { say, ask, state } = await asked(plain, { origin, channels: [] })
    await ask({ stepId: 'second', origin, channels: [] })
    await say('plain', { ...inRoom, text: 'yes' })
    expect(await state()).toBe('pending')
  })

  test.each([
    ['a room', 'room'],
    ['a conversation that is named after the person', 'ann'],
  ])('a keyword decides in %s after a restart, before the turn asks again', async (_, to) => {
    const first = await asked(plain, { origin: { ...origin, to: { to } }, channels: [] })
    await first.stop()
    const { say, approvals, turns } = await bench({ ...plain, folder: first.folder, clock: first.clock })
    await say('plain', { to: { to }, sender: 'bob', text: 'yes' })
    expect(await approvals.get(KEY)).toMatchObject({ state: 'pending' })
    await say('plain', { to: { to }, text: 'yes' })
    expect(await approvals.get(KEY)).toMatchObject({ state: 'approved', by: 'plain:ann' })
    expect(turns).toHaveLength(1)
  })
})

test('a reply that reaches another process than the one that asked is recognised there', async () => {
  const { store, clock, host, ask, settle, sent } = await bench()
  const elsewhere = new ApprovalRegistry({
    ...{ store: store.approvals, inbox: store.inbox, bus: (await bench()).bus, clock, log: host.log },
    people: new People({ store, ownership: { ownsAll: true }, clock, events: host.events, channels: () => [], operators: () => [] }),
    ownership: { ownsAll: false, of: () => undefined, held: () => [], onShards: async () => () => undefined },
    ...{ channels: () => [], features: () => [], targets: () => [], operators: () => [], queued: () => undefined },
    actorName: async (by) => by,
  })
  await elsewhere.start()
  await ask({ channels: ['community'] })
  await settle()
  const answer = { id: 'm9', account: 'bot', sender: 'ann', to: { to: 'ops' }, inReplyTo: sent[0]?.id ?? '', text: 'yes' }
  const channel = Object.assign(richChannel('community'), { capabilities: [] }) as unknown as Channel
  expect(await elsewhere.matchReply(channel, answer)).toMatchObject(KEY)
  expect(await elsewhere.matchReply(channel, { ...answer, text: 'and what else?' })).toBeUndefined()
  await elsewhere.stop()
})

test('a reply does not wait behind the turn that waits for it', async () => {
  const opened = Promise.withResolvers<void>()
  const { say, approvals, turns, sent, settle } = await bench({
    channels: [{ name: 'plain' }],
    async turn({ delivery }) {
      const origin = { channel: 'plain', account: 'bot', to: { to: 'room' }, sender: 'ann' }
      const key = { runId: delivery?.turnId ?? '', stepId: 'call-1' }
      await approvals.open({ ...key, gate: 'tool', workflow: 'shell', title: 'shell wants to run', message: 'ls', timeoutSecs: 0, origin })
      opened.resolve()
      const decided = await approvals.decision(key, new AbortController().signal)
      return `it was ${decided?.state}`
    },
  })
  await say('plain', { to: { to: 'room' }, text: 'list the files' })
  await opened.promise
  await settle()
  await say('plain', { to: { to: 'room' }, text: 'yes' })
  expect(turns).toHaveLength(1)
  expect(sent.map(({ text }) => text)).toContain('it was approved')
})

test('a reply is kept when the account has no room for other messages', async () => {
  const pending = Promise.withResolvers<string>()
  const made = await bench({ maxPending: 1, turn: () => pending.promise })
  await made.ask({ channels: ['community'] })
  await made.settle()
  await made.say('community', { text: 'hello' })
  await expect(made.say('community', { text: 'and another' })).rejects.toMatchObject({ code: 'unavailable' })
  await made.say('community', { inReplyTo: '1', text: 'yes' })
  expect(await made.approvals.get(KEY)).toMatchObject({ state: 'approved' })
  await expect(made.say('community', { text: 'and another' })).rejects.toMatchObject({ code: 'unavailable' })
  pending.resolve('hi')
  await made.settle()
  await made.say('community', { text: 'and another' })
  expect(made.turns).toHaveLength(2)
})

test('a long question is split, and the instructions stay with the buttons', async () => {
  const limits = { text: 200, unit: 'utf16' } as const
  const { sent, approvals, say, settle } = await bench({ channels: [richChannel('community', { limits })] })
  const message = 'word '.repeat(120).trim()
  await approvals.open({ ...KEY, gate: 'event', workflow: 'w', title: 'T', message, timeoutSecs: 0, channels: ['community'] })
  await settle()
  expect(sent.length).toBeGreaterThan(2)
  expect(sent.every(({ text }) => text.length <= 200)).toBe(true)
  expect(sent.slice(0, -1).every(({ buttons, topic, text }) => !buttons && !topic && !text.includes('Reply with'))).toBe(true)
  expect(sent.at(-1)).toMatchObject({ buttons: [{ label: 'Approve' }, { label: 'Reject' }], topic: 'Approval: w' })
  expect(sent.at(-1)?.text).toMatch(/Reply with one of: .*to reject \(or `rejected`, `no`\)\.$/s)
  const before = sent.length
  await say('community', { inReplyTo: '1', text: 'yes' })
  expect(sent.slice(before)).toMatchObject([{ to: { to: 'ops', thread: String(before) } }, { id: String(before), isEdit: true }])
})
