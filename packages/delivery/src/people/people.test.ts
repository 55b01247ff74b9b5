/** Linked people: codes, links, confirmations, and what follows the person. */
import { AppError, type Channel, type Inbound, ROOMS, roomKey, type Store, senderKey } from '@sluice/sdk'
import { describe, expect, it, test } from 'vitest'
import {
  bench,
  clock,
  type DeliveryBenchOptions,
  host,
  message,
  open,
  settle,
  setUpDeliveries,
  storeWith,
} from '../testing/delivery-bench.ts'
import { CODE_MINUTES, CODES_AN_HOUR_MAX, CODES_MAX, CODES_OF_ACCOUNT_MAX, codeIn, TRIES_MAX, TRIES_OF_ACCOUNT_MAX } from './codes.ts'
import { People } from './people.ts'

setUpDeliveries()

const limits = { text: 2000, unit: 'utf16' } as const
const ANN_X = 'channel:x/our-number/ann'
const ANN_Y = 'channel:y/our-number/ann-y'
const CODE = /\/link ([A-Z2-9]{5}-[A-Z2-9]{5})/

/** Two channels; `say` writes to one of them and resolves to what the person reads on each. */
async function arrange(options: DeliveryBenchOptions = {}) {
  const read: Record<'x' | 'y', string[]> = { x: [], y: [] }
  const y: Channel = {
    name: 'y',
    allow: ['ann-y', 'bob-y'],
    limits,
    async send(_, { text }) {
      read.y.push(text)
      return { id: `y-${read.y.length}` }
    },
  }
  const send: Channel['send'] = async (_, { text }) => {
    read.x.push(text)
    return { id: `x-${read.x.length}` }
  }
  const channel = { limits, allow: ['ann', 'bob', 'eve', '*'], ...options.channel }
  const made = await bench({ ...options, channel, send, others: [y] })
  let count = 0
  const say = async (name: 'x' | 'y', sender: string, text: string, more: Partial<Inbound> = {}): Promise<Record<'x' | 'y', string[]>> => {
    read.x.length = 0
    read.y.length = 0
    count += 1
    const said = message(`${name}${count}`, { sender, to: { to: sender }, text, addressed: 'direct', ...more })
    const received = { raw: null, verified: { by: 'test' }, receivedAtMs: clock.nowMs(), messages: [said] }
    await made.deliveries.receive(name === 'x' ? made.channel : y, received)
    await settle()
    return { x: [...read.x], y: [...read.y] }
  }
  const codeOf = async (name: 'x' | 'y', sender: string): Promise<string> => {
    const answer = await say(name, sender, '/link')
    return CODE.exec(answer[name].join())?.[1] ?? ''
  }
  const link = async () => say('y', 'ann-y', `/link ${await codeOf('x', 'ann')}`)
  const stored = async (): Promise<{ people: { account: string }[][]; codes: object[]; tries: object[] } | undefined> =>
    (await made.store.keyValue('people').get('links')) as never
  const linked = async () => ((await stored())?.people ?? []).map((person) => person.map(({ account }) => account))
  return { ...made, say, codeOf, link, stored, linked }
}

const peopleOn = (store: Store, ownsAll = true): People =>
  new People({ store, ownership: { ownsAll }, clock, events: host.events, channels: () => [], operators: () => [] })

it('links two accounts by a code, and shows the link on both, to operators and in the audit log', async () => {
  const { link, say, linked, store } = await arrange()
  const answers = await link()
  expect(answers.y.join()).toContain('linked with ann on x')
  expect(answers.x.join()).toContain('linked with ann-y on y')
  expect(await linked()).toEqual([[ANN_X, ANN_Y]])
  expect((await say('x', 'ann', '/who')).x.join()).toContain('Linked with ann-y on y.')
  expect((await say('y', 'ann-y', '/who')).y.join()).toContain('Linked with ann on x.')
  expect(host.emitted).toContainEqual({ type: 'people_changed', change: 'linked', account: ANN_Y, others: [ANN_X] })
  expect((await store.sops.audit({ limit: 9 })).map(({ kind, by }) => [kind, by])).toEqual([
    ['people_code_created', 'x:ann'],
    ['people_linked', 'y:ann-y'],
  ])
})

it('counts limits and keeps memories for the person, and for each account alone after /unlink', async () => {
  const asked: unknown[] = []
  const { link, say, turns, linked } = await arrange({
    limitsOf: (client) => {
      asked.push([client.client, client.person])
      return []
    },
  })
  await link()
  await say('y', 'ann-y', 'hello')
  await say('x', 'ann', 'hello')
  expect(turns.map(({ caller, limited }) => [caller, limited?.person])).toEqual([
    [ANN_Y, ANN_X],
    [ANN_X, ANN_X],
  ])
  expect(asked).toContainEqual([ANN_Y, ANN_X])
  const answers = await say('x', 'ann', '/unlink')
  expect(answers.x.join()).toContain('no longer linked with ann-y on y')
  expect(answers.y.join()).toContain('no longer linked with ann on x')
  expect(await linked()).toEqual([])
  await say('y', 'ann-y', 'alone')
  expect(turns.at(-1)?.limited).toEqual({ client: ANN_Y, standing: 'listed', channel: 'y' })
})

describe('the standing of the other account', () => {
  const standingOf = async (made: Awaited<ReturnType<typeof arrange>>, name: 'x' | 'y', sender: string, more: Partial<Inbound> = {}) => {
    await made.say(name, sender, 'hello', more)
    return made.turns.at(-1)?.limited?.standing
  }

  it('counts only after both have confirmed it, and not after /unlink', async () => {
    const made = await arrange({ operators: ['ann'] })
    await made.link()
    expect(await standingOf(made, 'y', 'ann-y')).toBe('listed')
    await made.say('y', 'ann-y', '/link confirm')
    expect(await standingOf(made, 'y', 'ann-y')).toBe('listed')
    expect((await made.say('x', 'ann', '/link confirm')).x).toEqual([
      'Confirmed: ann-y on y and this account may each do what the other may. /unlink ends that.',
    ])
    expect(await standingOf(made, 'y', 'ann-y')).toBe('operator')
    await made.say('y', 'ann-y', '/unlink')
    expect(await standingOf(made, 'y', 'ann-y')).toBe('listed')
  })

  it('does not count for an account that joins later, before it and the other have confirmed', async () => {
    const made = await arrange({ operators: ['ann'] })
    await made.link()
    await made.say('y', 'ann-y', '/link confirm')
    await made.say('x', 'ann', '/link confirm')
    await made.say('y', 'bob-y', `/link ${await made.codeOf('y', 'ann-y')}`)
    await made.say('y', 'bob-y', '/link confirm ann')
    expect(await standingOf(made, 'y', 'bob-y')).toBe('listed')
    expect(await standingOf(made, 'y', 'ann-y')).toBe('operator')
    // The operator has confirmed `ann-y`, and not yet `bob-y`.
    await made.say('x', 'ann', '/link confirm')
    expect(await standingOf(made, 'y', 'bob-y')).toBe('operator')
  })

  it('does not count for a message that proves nothing, which has no person either', async () => {
    const made = await arrange({ operators: ['ann'] })
    await made.link()
    await made.say('y', 'ann-y', '/link confirm')
    await made.say('x', 'ann', '/link confirm')
    expect(await standingOf(made, 'y', 'ann-y', { unverified: true })).toBe('unverified')
    expect(made.turns.at(-1)?.limited?.person).toBeUndefined()
  })
})

describe('a person with several accounts', () => {
  it('learns on each of them of a further one, also of one that made the code', async () => {
    const made = await arrange()
    await made.link()
    const joined = await made.say('y', 'bob-y', `/link ${await made.codeOf('y', 'ann-y')}`)
    expect(joined.x).toEqual([expect.stringContaining('is linked with bob-y on y:')])
    expect(joined.y.toSorted()).toEqual([
      expect.stringContaining('is linked with ann on x, ann-y on y:'),
      expect.stringContaining('is linked with bob-y on y:'),
    ])
    const byMaker = await made.say('x', 'ann', `/link ${await made.codeOf('x', 'bob')}`)
    expect(byMaker.x.filter((text) => text.includes('is linked with ann on x, ann-y on y, bob-y on y:'))).toHaveLength(1)
    expect(byMaker.y).toEqual(Array(2).fill(expect.stringContaining('is linked with bob on x:')))
  })

  it('confirms the only account that waits, asks which one of several, and tells all the others', async () => {
    const made = await arrange({ operators: ['ann'] })
    await made.link()
    const first = await made.say('x', 'ann', '/link confirm')
    expect(first.x).toEqual([expect.stringContaining('Confirmed: ann-y on y may')])
    expect(first.y).toEqual([expect.stringContaining('ann on x has confirmed ann-y on y')])
    expect(await made.say('x', 'ann', '/link confirm')).toEqual({ x: first.x, y: [] })
    expect(host.emitted.filter((event) => 'change' in event && event.change === 'confirmed')).toEqual([
      { type: 'people_changed', change: 'confirmed', account: ANN_X, others: [ANN_Y] },
    ])
    await made.say('y', 'bob-y', `/link ${await made.codeOf('y', 'ann-y')}`)
    const asked = await made.say('y', 'bob-y', '/link confirm')
    expect(asked).toEqual({ x: [], y: [expect.stringContaining('1: ann on x, 2: ann-y on y.')] })
    const confirmed = await made.say('y', 'bob-y', '/link confirm 2')
    expect(confirmed.x).toEqual([expect.stringContaining('bob-y on y has confirmed ann-y on y')])
    expect(confirmed.y).toContainEqual(expect.stringContaining('Confirmed: ann-y on y may'))
    expect(confirmed.y).toHaveLength(2)
    expect((await made.say('y', 'bob-y', '/link confirm eve')).y).toEqual([expect.stringContaining('wait to be confirmed: 1: ann on x.')])
    expect((await made.say('y', 'bob-y', `/link confirm ${ANN_X}`)).y.join()).toContain('Confirmed: ann on x may')
  })
})

describe('a turn in a shared room', () => {
  const inRoom = { to: { to: 'room' }, addressed: 'mention' } as const

  async function running() {
    const aborts = new Map<string, (reason: AppError) => void>()
    const made = await arrange({
      channel: { limits, allow: ['ann', 'ann-2', 'bob'] },
      async turn({ text, delivery, signal }) {
        if (!text.includes('long')) return `re: ${text}`
        const { promise, reject } = Promise.withResolvers<never>()
        aborts.set(delivery?.turnId ?? '', reject)
        signal?.addEventListener('abort', () => reject(new AppError('aborted', 'The turn was aborted')))
        return promise
      },
      abort(id) {
        aborts.get(id)?.(new AppError('aborted', 'The turn was aborted'))
        return aborts.delete(id)
      },
    })
    await made.say('x', 'ann-2', `/link ${await made.codeOf('x', 'ann')}`)
    return made
  }

  test.each([
    ['/stop', 'Stopped.'],
    ['/new', 'This is a new conversation.'],
  ])('is ended by %s of a linked account of its writer, and by that of nobody else', async (command, answer) => {
    const { say } = await running()
    await say('x', 'ann', 'a long job', inRoom)
    expect((await say('x', 'bob', command, inRoom)).x.join()).toContain('another person')
    expect((await say('x', 'ann-2', command, inRoom)).x.join()).toContain(answer)
  })

  test.each([
    ['/stop', 'Stopped.'],
    ['/new', 'This is a new conversation.'],
    ['/status', 'has been at work'],
  ])('that runs in a thread is found by %s of a linked account outside of threads', async (command, answer) => {
    const { say } = await running()
    await say('x', 'ann', 'a long job', { ...inRoom, to: { to: 'room', thread: 't' } })
    expect((await say('x', 'bob', command, inRoom)).x.join()).not.toMatch(/Stopped|at work/)
    expect((await say('x', 'ann-2', command, inRoom)).x.join()).toContain(answer)
    await say('x', 'ann', '/stop', inRoom)
  })

  test('counts in /usage of the linked accounts of its writer', async () => {
    const { say } = await running()
    await say('x', 'ann', 'one', inRoom)
    await say('x', 'ann-2', 'two', inRoom)
    await say('x', 'bob', 'three', inRoom)
    expect((await say('x', 'ann-2', '/usage', inRoom)).x.join()).toContain('hours: 2.')
    expect((await say('x', 'bob', '/usage', inRoom)).x.join()).toContain('hours: 1.')
  })

  test('goes on at /stop of an account that is no longer linked', async () => {
    const { say } = await running()
    await say('x', 'ann', 'a long job', inRoom)
    await say('x', 'ann-2', '/unlink')
    expect((await say('x', 'ann-2', '/stop', inRoom)).x.join()).toContain('another person')
    expect((await say('x', 'ann', '/stop', inRoom)).x.join()).toContain('Stopped.')
  })
})

describe('refuses', () => {
  it('a stranger, who gets no code and redeems none', async () => {
    const { say, codeOf, linked, stored } = await arrange({ channel: { allow: ['ann', '*'], limits, matches: () => false } })
    expect((await say('x', 'mallory', '/link')).x.join()).toContain('may not use /link')
    const code = await codeOf('x', 'ann')
    expect((await say('x', 'mallory', `/link ${code}`)).x.join()).toContain('may not use /link')
    expect(await linked()).toEqual([])
    expect((await stored())?.codes).toHaveLength(1)
  })

  it('the account that made the code, and accounts that are both linked', async () => {
    const { say, codeOf, link, linked } = await arrange()
    expect((await say('x', 'ann', `/link ${await codeOf('x', 'ann')}`)).x.join()).toContain('This account made the code')
    await link()
    const code = await codeOf('x', 'ann')
    expect((await say('y', 'ann-y', `/link ${code}`)).y.join()).toContain('linked already')
    await say('y', 'bob-y', `/link ${await codeOf('x', 'bob')}`)
    expect((await say('x', 'bob', `/link ${await codeOf('x', 'ann')}`)).x.join()).toContain('linked already')
    expect(await linked()).toEqual([
      [ANN_X, ANN_Y],
      ['channel:x/our-number/bob', 'channel:y/our-number/bob-y'],
    ])
  })

  it('a room, where a code that others have read becomes void', async () => {
    const { say, codeOf, linked } = await arrange()
    const inRoom = { to: { to: 'room' }, addressed: 'command' } as const
    expect((await say('x', 'ann', '/link', inRoom)).x.join()).toContain('direct chats only')
    const code = await codeOf('x', 'ann')
    expect((await say('y', 'ann-y', `/link ${code}`, inRoom)).y.join()).toContain('direct chats only')
    expect((await say('y', 'ann-y', `/link ${code}`)).y.join()).toContain('wrong, used or too old')
    expect((await say('y', 'ann-y', '/unlink', inRoom)).y.join()).toContain('direct chats only')
    expect(await linked()).toEqual([])
  })

  it.each<[string, object]>([
    ['that answers only what is addressed to the bot', { respond: 'mention', session: 'shared' }],
    ['that answers nothing', { respond: 'never' }],
    ['with a rule for other people', { people: ['bob'] }],
  ])('a code that was written in a room %s, and keeps no line of it', async (_, rule) => {
    const { say, codeOf, stored, store, channel } = await arrange()
    const place = { channel: channel.name, account: 'our-number', conversation: 'room' }
    await store.keyValue(ROOMS).set(roomKey(place), rule)
    const code = await codeOf('x', 'ann')
    const inRoom = { to: { to: 'room' }, addressed: 'overheard' } as const
    expect(await say('x', 'ann', `/link ${code}`, inRoom)).toEqual({ x: [], y: [] })
    expect((await stored())?.codes).toEqual([])
    expect((await say('y', 'bob-y', `/link ${code}`)).y.join()).toContain('wrong, used or too old')
    expect(await store.keyValue('overheard').list('', 9)).toEqual([])
  })

  it('a code that was written in a room to another bot', async () => {
    const { say, codeOf, stored } = await arrange()
    const code = await codeOf('x', 'ann')
    await say('x', 'ann', `/link@other_bot ${code}`, { to: { to: 'room' }, addressed: 'overheard' })
    expect((await stored())?.codes).toEqual([])
  })

  it('a code that an edit puts into an overheard message, of which no line is kept', async () => {
    const { say, codeOf, stored, store, channel } = await arrange()
    const place = { channel: channel.name, account: 'our-number', conversation: 'room' }
    await store.keyValue(ROOMS).set(roomKey(place), { respond: 'mention', session: 'shared' })
    const inRoom = { to: { to: 'room' }, addressed: 'overheard' } as const
    await say('x', 'ann', 'lunch?', { ...inRoom, id: 'lunch' })
    expect(await store.keyValue('overheard').list('', 9)).toHaveLength(1)
    const code = await codeOf('x', 'ann')
    // An edit need not say how it is addressed.
    await say('x', 'ann', `/link ${code}`, { to: inRoom.to, addressed: undefined as never, changes: { message: 'lunch', what: 'edited' } })
    expect((await stored())?.codes).toEqual([])
    expect(await store.keyValue('overheard').list('', 9)).toEqual([])
  })

  it('a code that was used, replaced, or is too old', async () => {
    const { say, codeOf, linked } = await arrange()
    const replaced = await codeOf('x', 'ann')
    const used = await codeOf('x', 'ann')
    expect((await say('y', 'ann-y', `/link ${replaced}`)).y.join()).toContain('wrong, used or too old')
    await say('y', 'ann-y', `/link ${used.toLowerCase().replace('-', ' ')}`)
    expect((await say('y', 'bob-y', `/link ${used}`)).y.join()).toContain('wrong, used or too old')
    const old = await codeOf('x', 'bob')
    await clock.advance(CODE_MINUTES * 60_000)
    expect((await say('y', 'bob-y', `/link ${old}`)).y.join()).toContain('wrong, used or too old')
    expect(await linked()).toEqual([[ANN_X, ANN_Y]])
  })

  it('the right code after too many wrong ones of the account, until an hour has passed', async () => {
    const { say, codeOf, linked } = await arrange()
    for (let wrong = 0; wrong < TRIES_OF_ACCOUNT_MAX; wrong++) await say('y', 'ann-y', '/link AAAAA-AAAAA')
    const code = await codeOf('x', 'ann')
    expect((await say('y', 'ann-y', `/link ${code}`)).y.join()).toContain('Too many wrong codes')
    expect(await linked()).toEqual([])
    await clock.advance(3_600_000)
    await say('y', 'ann-y', `/link ${await codeOf('x', 'ann')}`)
    expect(await linked()).toEqual([[ANN_X, ANN_Y]])
  })

  it('words that are no code, without counting them', async () => {
    const { say, stored } = await arrange()
    expect((await say('x', 'ann', '/link example.com')).x.join()).toContain('Write /link alone')
    expect(await stored()).toBeUndefined()
    expect((await say('x', 'ann', '/link confirm')).x.join()).toContain('not linked')
    expect((await say('x', 'ann', '/unlink')).x.join()).toContain('not linked')
  })
})

test('too many wrong codes of all accounts together, and too many open codes, are refused', async () => {
  const store = open()
  const people = peopleOn(store)
  const key = (number: number) => senderKey('x', { account: 'a', sender: String(number) })
  const account = (number: number) => ({ account: key(number), by: 'x:1' })
  const { code } = await people.newCode(account(0))
  const { codes } = (await store.keyValue('people').get('links')) as { codes: object[] }
  const all = (length: number, of: (number: number) => object) => Array.from({ length }, (_, number) => of(number))
  const tries = all(TRIES_MAX, (number) => ({ account: key(number), atMs: clock.nowMs() }))
  const others = all(CODES_MAX - 1, (number) => ({ ...codes[0], account: key(number + 1) }))
  await store.keyValue('people').set('links', { people: [], codes: [...codes, ...others], tries: tries.slice(1) })
  await expect(people.newCode(account(CODES_MAX))).rejects.toMatchObject({ code: 'rate_limited' })
  // A further code of the same account replaces its first one.
  const { code: second } = await people.newCode(account(0))
  expect(await people.redeem(account(TRIES_MAX), code)).toEqual({ outcome: 'wrong' })
  expect(await people.redeem(account(TRIES_MAX + 1), second)).toEqual({ outcome: 'tries' })
})

test('tries beyond the limit, and codes beyond the limit, write nothing', async () => {
  const { say, store, stored } = await arrange()
  const refused = async () => (await store.sops.audit({ limit: 200 })).filter(({ kind }) => kind === 'people_link_refused').length
  for (let wrong = 0; wrong < TRIES_OF_ACCOUNT_MAX * 4; wrong++) await say('y', 'ann-y', '/link AAAAA-AAAAA')
  expect(await refused()).toBe(TRIES_OF_ACCOUNT_MAX)
  expect((await stored())?.tries).toHaveLength(TRIES_OF_ACCOUNT_MAX)
  const answers: string[] = []
  for (let made = 0; made <= CODES_OF_ACCOUNT_MAX * 2; made++) answers.push((await say('x', 'ann', '/link')).x.join())
  expect(answers.filter((answer) => CODE.test(answer))).toHaveLength(CODES_OF_ACCOUNT_MAX)
  expect((await store.sops.audit({ limit: 200 })).filter(({ kind }) => kind === 'people_code_created')).toHaveLength(CODES_OF_ACCOUNT_MAX)
  expect((await say('x', 'bob', '/link')).x.join()).toMatch(CODE)
  expect(answers.at(-1)).toMatch(/ 60 minutes/)
  await clock.advance(3_000_000)
  expect((await say('x', 'ann', '/link')).x.join()).toMatch(/ 10 minutes/)
  await clock.advance(600_000)
  expect((await say('x', 'ann', '/link')).x.join()).toMatch(CODE)
})

test('codes of all accounts together are limited in an hour', async () => {
  const store = open()
  const people = peopleOn(store)
  const key = (number: number) => senderKey('x', { account: 'a', sender: String(number) })
  const made = Array.from({ length: CODES_AN_HOUR_MAX }, (_, number) => ({ account: key(number), atMs: clock.nowMs() }))
  await store.keyValue('people').set('links', { people: [], codes: [], tries: [], made: made.slice(1) })
  await people.newCode({ account: key(CODES_AN_HOUR_MAX), by: 'x:1' })
  await expect(people.newCode({ account: key(CODES_AN_HOUR_MAX + 1), by: 'x:1' })).rejects.toMatchObject({ code: 'rate_limited' })
})

test('the code is in no log, no event and no stored value', async () => {
  const { say, codeOf, stored } = await arrange()
  const code = await codeOf('x', 'ann')
  const [typed = ''] = [codeIn(code)]
  expect(JSON.stringify(await stored())).not.toContain(typed)
  await say('y', 'ann-y', `/link ${code}`)
  const told = JSON.stringify([host.logs, host.emitted, await stored()])
  for (const form of [code, typed]) expect(told).not.toContain(form)
})

test('of two accounts that type one code at once, one is linked', async () => {
  const store = open()
  const [one, two] = [peopleOn(store), peopleOn(store)]
  const { code } = await one.newCode({ account: ANN_X, by: 'x:ann' })
  const outcomes = await Promise.all([
    one.redeem({ account: ANN_Y, by: 'y:ann' }, code),
    two.redeem({ account: 'device:d', by: 'device:d' }, code),
  ])
  expect(outcomes.map(({ outcome }) => outcome).toSorted()).toEqual(['linked', 'wrong'])
  await one.refresh()
  expect(one.list()).toHaveLength(1)
  expect(one.list()[0]).toHaveLength(2)
})

describe('a crash', () => {
  it('before the link is stored leaves nothing, and the repeat of the command links', async () => {
    const store = open()
    let crashes = 0
    const keyValue: Store['keyValue'] = (owner) => {
      const keys = store.keyValue(owner)
      const swap: typeof keys.swap = async (...args) => {
        if (owner !== 'people' || crashes-- !== 1) return keys.swap(...args)
        throw new Error('the power is gone')
      }
      return { ...keys, swap }
    }
    const { say, codeOf, linked } = await arrange({ store: { ...store, keyValue } })
    const code = await codeOf('x', 'ann')
    crashes = 1
    const cut = await say('y', 'ann-y', `/link ${code}`)
    expect([cut, await linked()]).toEqual([{ x: [], y: [] }, []])
    await clock.advance(5000)
    await settle()
    expect(await linked()).toEqual([[ANN_X, ANN_Y]])
  })

  it.each([
    ['', false],
    [', also when the account that made the code joins the person of the other', true],
  ])('after the link is stored answers as if there had been none%s', async (_, isLinkedBefore) => {
    const store = open()
    let isCut = false
    const cutting = storeWith(store, ({ inbox }) => ({
      inbox: {
        ...inbox,
        async done(...args) {
          if (!isCut) return inbox.done(...args)
          isCut = false
          throw new Error('the power is gone')
        },
      },
    }))
    const made = await arrange({ store: cutting })
    if (isLinkedBefore) await made.say('y', 'bob-y', `/link ${await made.codeOf('y', 'ann-y')}`)
    const before = isLinkedBefore ? [ANN_Y, 'channel:y/our-number/bob-y'] : []
    const all = [isLinkedBefore ? [...before, ANN_X] : [ANN_X, ANN_Y]]
    const code = await made.codeOf('x', 'ann')
    isCut = true
    await made.say('y', 'ann-y', `/link ${code}`)
    expect(await made.linked()).toEqual(all)
    await clock.advance(5000)
    await settle()
    const answers = (await store.outbox.list({ limit: 20, channel: 'y' })).map(({ text }) => text)
    expect(
      answers.filter((text) => text?.includes(isLinkedBefore ? 'linked with bob-y on y, ann on x' : 'linked with ann on x')),
    ).toHaveLength(1)
    expect(answers.join()).not.toContain('wrong, used or too old')
    expect(await made.linked()).toEqual(all)
    expect((await made.stored())?.tries).toEqual([])
  })
})

test('an unlinked account is separated for others that have read the links before', async () => {
  const store = open()
  const [here, there] = [peopleOn(store, false), peopleOn(store)]
  const { code } = await there.newCode({ account: ANN_X, by: 'x:ann' })
  await there.redeem({ account: ANN_Y, by: 'y:ann' }, code)
  await here.refresh()
  expect(here.principal({ client: ANN_Y, standing: 'listed' }).person).toBe(ANN_X)
  await there.unlink({ account: ANN_X, by: 'operator' })
  await here.refresh()
  expect(here.principal({ client: ANN_Y, standing: 'listed' }).person).toBeUndefined()
})

test('a text that is not an open code is not written', async () => {
  const store = open()
  let swaps = 0
  const keyValue: Store['keyValue'] = (owner) => ({
    ...store.keyValue(owner),
    swap: (...args) => {
      swaps += 1
      return store.keyValue(owner).swap(...args)
    },
  })
  const people = peopleOn({ ...store, keyValue })
  const { code } = await people.newCode({ account: ANN_X, by: 'x:ann' })
  await people.revoke('AAAAA-AAAAA')
  expect(swaps).toBe(1)
  await people.revoke(code)
  expect(swaps).toBe(2)
})

test('links that a later release wrote are not overwritten, and link nobody', async () => {
  const store = open()
  await store.keyValue('people').set('links', { people: 'another form' })
  const people = peopleOn(store)
  await expect(people.newCode({ account: ANN_X, by: 'x:ann' })).rejects.toMatchObject({ code: 'config_invalid' })
  await people.refresh()
  await people.revoke('AAAAA-AAAAA')
  expect(people.personOf(ANN_X)).toBeUndefined()
  expect(await store.keyValue('people').get('links')).toEqual({ people: 'another form' })
})

describe('a change of a link that a failed write or a crash cuts off', () => {
  const busy = () => Promise.reject(new AppError('unavailable', 'disk full', { retryAfterSecs: 1 }))
  const changes = () => host.emitted.flatMap((event) => (event.type === 'people_changed' ? [event.change] : []))
  const audited = async (store: Store) =>
    (await store.sops.audit({ limit: 50 })).map(({ kind }) => kind).filter((kind) => kind !== 'people_code_created')
  const settleAll = async () => {
    for (let round = 0; round < 3; round++) {
      await clock.advance(30_000)
      await settle()
    }
  }

  test.each(['audit', 'done'] as const)('is announced to all once when its command is repeated: %s', async (cut) => {
    const store = open()
    let fails = 0
    const failing = storeWith(store, (owned) => ({
      inbox: { ...owned.inbox, done: (...given) => (cut === 'done' && fails-- > 0 ? busy() : owned.inbox.done(...given)) },
    }))
    const sops = {
      ...store.sops,
      record: (rows: Parameters<Store['sops']['record']>[0]) => (cut === 'audit' && fails-- > 0 ? busy() : store.sops.record(rows)),
    }
    const { say, codeOf } = await arrange({ store: { ...failing, sops } })
    const code = await codeOf('x', 'ann')
    for (const [name, sender, text] of [
      ['y', 'ann-y', `/link ${code}`],
      ['y', 'ann-y', '/link confirm'],
      ['x', 'ann', '/unlink'],
    ] as const) {
      fails = 1
      await say(name, sender, text)
      await settleAll()
    }
    const rows = (await store.outbox.list({ limit: 50 })).map(({ channel, text }) => `${channel}: ${text?.slice(0, 40)}`)
    expect(rows.filter((row) => /^y: .*no longer/.test(row))).toHaveLength(1)
    expect(rows.filter((row) => /^x: .*no longer/.test(row))).toHaveLength(1)
    expect(rows.filter((row) => /is linked with/.test(row))).toHaveLength(2)
    expect(rows.filter((row) => /not linked/.test(row))).toEqual([])
    expect(await audited(store)).toEqual(['people_linked', 'people_confirmed', 'people_unlinked'])
    expect(changes()).toEqual(['linked', 'confirmed', 'unlinked'])
  })

  it('is announced once by another process, which carries the command out again', async () => {
    const store = open()
    const boss = peopleOn(store)
    const { code } = await boss.newCode({ account: ANN_X, by: 'x:ann' })
    const typing = { account: ANN_Y, by: 'y:ann-y', command: 'inbox:1' }
    await boss.redeem(typing, code)
    expect(await peopleOn(store).redeem(typing, code)).toMatchObject({ outcome: 'linked', other: { account: ANN_X } })
    const leaving = { account: ANN_X, by: 'x:ann', command: 'inbox:2' }
    const cut = peopleOn({ ...store, sops: { ...store.sops, record: busy } })
    await expect(cut.unlink(leaving)).rejects.toMatchObject({ code: 'unavailable' })
    for (let repeat = 0; repeat < 2; repeat++) expect(await peopleOn(store).unlink(leaving)).toMatchObject({ others: [{ account: ANN_Y }] })
    expect(await audited(store)).toEqual(['people_linked', 'people_unlinked'])
  })

  it('is found again by a repeated request until all were told, and is told by the next start', async () => {
    const { store, linked, link } = await arrange()
    await link()
    const cut = peopleOn({ ...store, sops: { ...store.sops, record: busy } })
    const leaving = { account: ANN_X, by: 'device:phone' }
    await expect(cut.unlink(leaving)).rejects.toMatchObject({ code: 'unavailable' })
    expect(await linked()).toEqual([])
    const change = await peopleOn(store).unlink(leaving)
    expect(change).toMatchObject({ others: [{ account: ANN_Y }] })
    await clock.advance(120_000)
    const told = async () =>
      (await store.outbox.list({ limit: 50 })).filter(({ text }) => /no longer/.test(text ?? '')).map(({ channel }) => channel)
    expect(await told()).toEqual([])
    for (let start = 0; start < 2; start++) {
      const again = await arrange({ store })
      await settle()
      await again.deliveries.stop(0)
    }
    expect(await told()).toEqual(['y'])
    expect(await peopleOn(store).unlink(leaving)).toBeUndefined()
  })
})

describe('the stored changes of links', () => {
  const ann = { account: ANN_X, name: 'Ann', to: { to: 'ann-address' }, by: 'x:ann', command: 'inbox:1' }
  const bob = (number: number) => ({ account: 'channel:x/our-number/bob', name: 'Bob', by: 'x:bob', command: `inbox:${number}` })
  const linkIn = async (people: People) => people.redeem({ account: ANN_Y, name: 'Ann Y', by: 'y:ann-y' }, (await people.newCode(ann)).code)

  it('name no erased account, whoever made them, and neither do codes and tries', async () => {
    const store = open()
    const people = peopleOn(store)
    await linkIn(people)
    await people.confirm({ ...ann, command: 'inbox:2' })
    await people.redeem({ ...bob(3), command: 'inbox:3' }, (await people.newCode({ ...ann, command: 'inbox:4' })).code)
    await people.unlink({ ...bob(5), isByOther: true })
    await people.redeem(bob(6), 'AAAAA-AAAAA')
    await people.newCode(ann)
    await people.unlink({ account: ANN_X, by: 'x:ann', command: 'inbox:7' })
    await people.newCode(bob(8))
    const stored = async () => (await store.keyValue('people').get('links')) as Record<string, object[]>
    expect((await stored()).changes).toHaveLength(5)
    await people.forget((account) => account === ANN_X || account === ANN_Y)
    const left = await stored()
    expect(JSON.stringify(left)).not.toMatch(/\bann/i)
    expect(left).toMatchObject({ people: [], codes: [{ account: bob(8).account }], changes: [] })
    expect([left.tries?.length, left.made?.length]).toEqual([1, 1])
    const audit = (await store.sops.audit({ limit: 50 })).map(({ kind }) => kind)
    expect(audit.filter((kind) => kind === 'people_unlinked')).toHaveLength(2)
  })

  it.each(['the sweep', 'any write'])('go after a day with %s', async (cause) => {
    const store = open()
    const people = peopleOn(store)
    await linkIn(people)
    const changes = async () => ((await store.keyValue('people').get('links')) as { changes: object[] }).changes.length
    const write = () => (cause === 'the sweep' ? people.sweep() : people.newCode(bob(9)))
    await clock.advance(23 * 3_600_000)
    await write()
    expect(await changes()).toBe(1)
    await clock.advance(2 * 3_600_000)
    await write()
    expect(await changes()).toBe(0)
    expect(people.personOf(ANN_X)).toHaveLength(2)
  })
})
