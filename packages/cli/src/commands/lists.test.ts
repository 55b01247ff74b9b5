/** Every command that prints a list, on more entries than one page of the API has. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startDaemon } from '@sluice/daemon'
import { systemClock } from '@sluice/kit'
import { scratch } from '@sluice/qa/daemons/bundle'
import { sluiceWith } from '@sluice/qa/daemons/run-command'
import { defineFeature, type Store } from '@sluice/sdk'
import { openStore } from '@sluice/store'
import { turnEnd } from '@sluice/testkit/store-rules/samples'
import { startRuns } from '@sluice/testkit/store-rules/sop-samples'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { CORE_COMMANDS } from '../core-commands.ts'

/** More than two pages of the API. */
const COUNT = 1200
/** Procedures are folders, which the API lists without pages. */
const PROCEDURES = 120
const upTo = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index + 1)
const numbers = upTo(COUNT)

interface List {
  /** The member of the JSON document that has the entries; absent if the document is the list. */
  readonly member?: string
  /** The member that identifies an entry. */
  readonly key: string
  /** The number of entries; default: `COUNT`. */
  readonly count?: number
  /** The number of entries without `--limit`; default: all. */
  readonly byDefault?: number
  /** True: a daemon would work on the entries, and so change them. */
  readonly isWorkedOn?: boolean
  readonly fill: (store: Store, dataDir: string) => Promise<void>
}

const OFFLINE = defineFeature({
  id: 'provider-offline',
  build: () => ({ providers: [{ kinds: ['offline'], load: async () => ({}) as never }] }),
})

const reply = (number: number) => ({
  channel: 'testchat',
  account: 'bot',
  to: { to: 'room' },
  text: `reply ${number}`,
  part: 1,
  parts: 1,
  clientId: `client-${number}`,
  turnId: null,
  createdAtMs: number,
})

async function fillInbox({ inbox }: Store): Promise<void> {
  const message = (number: number) => ({ id: `m${number}`, account: 'bot', sender: 'alice', to: { to: 'room' }, text: 'hi' })
  for (const number of numbers)
    void inbox.keep({
      channel: 'testchat',
      verdict: 'x-signature',
      raw: null,
      receivedAtMs: number,
      messages: [{ session: 'channel:testchat/room', message: message(number) }],
    })
  await Promise.all(numbers.map((number) => inbox.start(number, `turn-${number}`, 5)))
  await Promise.all(numbers.map((number) => inbox.markDead(number, { error: 'no model', atMs: 1 })))
}

async function fillOutbox({ outbox }: Store): Promise<void> {
  await outbox.add(numbers.map(reply))
  await Promise.all(numbers.map((number) => outbox.start(number)))
  const stateOf = (number: number) => (number % 2 === 0 ? 'dead' : 'ambiguous')
  await Promise.all(numbers.map((number) => outbox.giveUp(number, { state: stateOf(number), error: 'refused', atMs: 1 })))
}

const openApproval = ({ approvals }: Store, number: number) =>
  approvals.open(
    {
      runId: `run-${number}`,
      stepId: 'deploy',
      gate: 'event',
      workflow: 'release',
      title: 'Deploy?',
      message: '',
      approveKeywords: [],
      rejectKeywords: [],
      createdAtMs: number,
      expiresAtMs: null,
      token: `token-${number}`,
    },
    [],
  )

/** Writes procedures that have no effect and one step. */
async function writeProcedures(folder: string): Promise<void> {
  for (const number of upTo(PROCEDURES)) {
    const name = `p${number}`
    mkdirSync(join(folder, name), { recursive: true })
    writeFileSync(join(folder, name, 'SOP.toml'), `[sop]\nname = "${name}"\ndescription = "d"\n[[triggers]]\ntype = "manual"\n`)
    writeFileSync(join(folder, name, 'SOP.md'), '## Steps\n\n1. **Wait** - Wait.\n   - kind: checkpoint\n')
  }
}

/** The line on standard error that says that there are more entries. */
const hasMore = /^(?:older ones: add --before|there are more: add --limit|there are (?:\d+ more|more|older approvals): raise --limit)/

const LISTS: Readonly<Record<string, List>> = {
  'inbox list': { key: 'number', byDefault: 50, fill: fillInbox },
  'inbox dead': { key: 'number', byDefault: 50, fill: fillInbox },
  'outbox list': { key: 'number', byDefault: 50, fill: fillOutbox },
  'outbox dead': { key: 'number', byDefault: 50, fill: fillOutbox },
  'approvals list': {
    key: 'run_id',
    byDefault: 50,
    fill: async (store) => void (await Promise.all(numbers.map((number) => openApproval(store, number)))),
  },
  'sop runs': {
    isWorkedOn: true,
    key: 'run_id',
    byDefault: 50,
    fill: async (store) =>
      void (await startRuns(
        store,
        numbers.map((number) => `run-${number}`),
      )),
  },
  'sop audit': {
    isWorkedOn: true,
    member: 'rows',
    key: 'number',
    byDefault: 50,
    fill: async (store) =>
      void (await startRuns(
        store,
        numbers.map((number) => `run-${number}`),
      )),
  },
  'sessions list': {
    member: 'sessions',
    key: 'session_id',
    byDefault: 50,
    fill: async ({ turns }) =>
      void (await Promise.all(numbers.map((number) => turns.finish(turnEnd(`t${number}`, { sessionId: `device/s${number}` }))))),
  },
  'turns list': {
    member: 'turns',
    key: 'turn_id',
    byDefault: 50,
    fill: async ({ turns }) =>
      void (await Promise.all(numbers.map((number) => turns.finish(turnEnd(`t${number}`, { endedAtMs: number }))))),
  },
  'memory list': {
    key: 'key',
    fill: async ({ memory }) =>
      void (await Promise.all(
        numbers.map((number) => memory.put({ owner: 'cli', key: `k${number}`, content: 'c', category: 'core', untrusted: false, atMs: 1 })),
      )),
  },
  'pair list': {
    key: 'id',
    fill: async ({ devices }) => {
      const device = (number: number) =>
        ({ id: `d${number}`, name: 'phone', tokenHash: `h${number}`, role: 'client', createdAtMs: 0, expiresAtMs: null }) as const
      await Promise.all(numbers.map((number) => devices.add(device(number))))
    },
  },
  'limits list': {
    key: 'client',
    fill: async ({ admissions }) => {
      const held = (number: number) =>
        ({ client: `device:d${number}`, cause: 'turns_per_hour', sinceMs: Date.now(), untilMs: Date.now() + 3_600_000 }) as const
      await Promise.all(numbers.map((number) => admissions.hold(held(number), 0)))
    },
  },
  'sop list': { key: 'name', count: PROCEDURES, fill: (_store, dataDir) => writeProcedures(join(dataDir, 'sops')) },
  'sop waiting': { key: 'folder', count: PROCEDURES, fill: (_store, dataDir) => writeProcedures(join(dataDir, 'workspace', 'sops')) },
}

/** Lists that the build or the API bounds: they are printed as a whole. */
const WHOLE = ['features', 'channels list', 'rooms list', 'people list']

test('the table has every command that lists', () => {
  const lists = CORE_COMMANDS.filter(
    ({ name, options }) => /(?:^| )(?:list|runs|dead|audit|waiting)$/.test(name) || options?.limit || name === 'features',
  )
  const messages = ['sessions find', 'sessions show']
  expect(lists.map(({ name }) => name).toSorted()).toEqual([...Object.keys(LISTS), ...WHOLE, ...messages].toSorted())
})

describe.each(Object.entries(LISTS))('sluice %s', (command, { member, key, count = COUNT, byDefault, isWorkedOn = false, fill }) => {
  const { dir, dispose } = scratch('[log]\nlevel = "error"\n')
  const sluice = sluiceWith([])
  const run = async (...argv: string[]) => {
    const ran = await sluice(...command.split(' '), ...argv, '--json', '--data-dir', dir)
    const document = JSON.parse(ran.out)
    const entries: Record<string, unknown>[] = member === undefined ? document : document[member]
    const { next = null } = document
    // A document that has `next` says by it whether there are more entries.
    const err = next === null ? ran.err : `older ones: add --before ${next}`
    return { ...ran, err, entries, keys: new Set(entries.map((entry) => entry[key])) }
  }

  beforeAll(async () => {
    mkdirSync(dir, { recursive: true })
    const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} }
    const store = openStore({ file: join(dir, 'sluice.db'), clock: systemClock, log })
    await fill(store, dir)
    await store.close()
  })
  afterAll(dispose)

  test('prints every entry once and no entry more', async () => {
    const { code, keys, entries, err } = await run(...(byDefault === undefined ? [] : ['--limit', String(count)]))
    expect([code, entries.length, keys.size, err]).toEqual([0, count, count, ''])
  })

  if (!isWorkedOn) {
    test('prints every entry once over the control socket', async () => {
      const configFile = join(dir, 'config.toml')
      const daemon = await startDaemon({ features: [OFFLINE], dataDir: dir, configFile, env: {}, profile: 'test', version: '0', port: 0 })
      try {
        const { code, keys, entries, err } = await run('--limit', String(count))
        expect([code, entries.length, keys.size, err]).toEqual([0, count, count, ''])
      } finally {
        await daemon.stop()
      }
    })
  }

  test('prints at most --limit entries, and says that there are more', async () => {
    // More than one page of the API, where it has pages.
    const limit = Math.ceil(count * 0.6)
    const { entries, keys, err } = await run('--limit', String(limit))
    expect([entries.length, keys.size]).toEqual([limit, limit])
    expect(err).toMatch(hasMore)
  })

  test('without --limit, says it if entries are left out', async () => {
    const { entries, err } = await run()
    expect(entries).toHaveLength(byDefault ?? count)
    expect(err === '').toBe(byDefault === undefined)
  })
})
