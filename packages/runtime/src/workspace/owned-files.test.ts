/** Files live as long as the conversations that name them, and files of an earlier release get their owners. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileOwnerOfSession, type ModelMessage, ownerFolder, type SessionStore, type TurnStore } from '@sluice/sdk'
import { testHost } from '@sluice/testkit/host'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { resultsBy } from './make-room.ts'
import { OwnedFiles } from './owned-files.ts'
import { createWorkspace } from './workspace.ts'

const NOW_MS = Date.UTC(2030, 0, 10)
const HOUR_MS = 3_600_000
const MINE = 'ann/mine'
const OTHER = 'ann/other'
const FORMER = ['0123456789abcdef.txt', 'fedcba9876543210.pdf', 'aaaaaaaaaaaaaaaa.png'] as const

let dataDir: string
let said: Map<string, string[]>
let open: string[]
beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), 'files-'))
  said = new Map()
  open = []
})
afterEach(() => rmSync(dataDir, { recursive: true }))

const root = () => join(dataDir, 'workspace')
const kept = (path: string) => existsSync(join(dataDir, 'files/main', path))

/** A store with these messages, which lists one session and one turn at a time. */
function owned(): OwnedFiles {
  const message = (text: string): ModelMessage => ({ role: 'user', content: [{ type: 'text', text }] })
  const sessions: Pick<SessionStore, 'list' | 'messagesByTurn'> = {
    async list({ prefix = '', suffix = '' }) {
      const ids = [...said.keys()].filter((id) => id.replace('agent:help/', '').startsWith(prefix) && id.endsWith(suffix))
      return ids.map((id) => ({ id, name: null, createdAtMs: 0, lastActiveAtMs: 0, messageCount: 1 }))
    },
    messagesByTurn: async (id) => (said.get(id) ?? []).map((text, at) => ({ upTo: at + 1, atMs: 0, messages: [message(text)] })),
  }
  const turns: Pick<TurnStore, 'openSessions'> = { openSessions: async () => open }
  const store = { sessions: sessions as SessionStore, turns: turns as TurnStore }
  return new OwnedFiles({ store, dataDir, clock: { nowMs: () => NOW_MS }, log: testHost().log })
}

/** Saves a file for the owner of a session, which then names it; `ageMs` ago. */
async function sent(session: string, text: string, ageMs = 0): Promise<string> {
  const workspace = createWorkspace({ root: root(), forbidden: [], files: join(dataDir, 'files/main') })
  const path = await workspace.attach({ owner: fileOwnerOfSession(session), bytes: Buffer.from(text), extension: 'txt' })
  const at = (NOW_MS - ageMs) / 1000
  utimesSync(join(dataDir, 'files/main', path), at, at)
  said.set(session, [...(said.get(session) ?? []), `[Document: a.txt] ${path}`])
  return path
}

async function erase(session: string): Promise<number> {
  const files = owned()
  const named = await files.namedBy(session)
  said.delete(session)
  return files.erased(session, named)
}

test('erasing a conversation deletes its files, but none that another conversation of the person names', async () => {
  const [only, shared] = [await sent(MINE, 'passport'), await sent(MINE, 'photo')]
  await sent(OTHER, 'photo')
  const ofBen = await sent('ben/s', 'passport')
  const results = `results/${ownerFolder(MINE)}/1.txt`
  mkdirSync(join(dataDir, 'files/main', results, '..'), { recursive: true })
  writeFileSync(join(dataDir, 'files/main', results), 'result')
  expect(await erase(MINE)).toBe(2)
  expect([only, shared, ofBen, results].map(kept)).toEqual([false, true, true, false])
  expect(await erase(OTHER)).toBe(1)
  expect(kept(`attachments/${ownerFolder('device:ann')}`)).toBe(false)
})

test('results count for their owner until the conversation or the person is erased', async () => {
  const [ada, eve] = ['channel:x/bot/room/ada', 'channel:x/bot/room/eve']
  const workspace = createWorkspace({ root: root(), forbidden: [], files: join(dataDir, 'files/main') })
  const result = async (session: string, owner = fileOwnerOfSession(session)) => {
    const path = `results/${ownerFolder(session)}/1.txt`
    await workspace.as({ caller: { owner, session, isOperator: false }, pool: 'x' }).write(path, Buffer.alloc(20_000))
    return path
  }
  const files = join(dataDir, 'files/main')
  const bytes = async () => {
    const owners = [ada, eve, MINE].map((session) => ownerFolder(fileOwnerOfSession(session)))
    const results = await Promise.all(owners.map((owner) => resultsBy(files, owner)))
    return results.map((found) => found.reduce((sum, { bytes: each }) => sum + each, 0))
  }
  const paths = [await result(ada), await result(eve), await result(MINE), await result('turn:1', 'device:ann')]
  expect(await bytes()).toEqual([20_000, 20_000, 40_000])
  expect(await owned().erasedOwner(ada)).toBe(1)
  said.set(MINE, ['x'])
  expect(await erase(MINE)).toBe(1)
  expect(paths.map(kept)).toEqual([false, true, false, true])
  expect(await bytes()).toEqual([0, 20_000, 20_000])
  expect(readdirSync(join(dataDir, 'files/main/owners')).toSorted()).toEqual(
    [eve, MINE].map((id) => ownerFolder(fileOwnerOfSession(id))).toSorted(),
  )
  expect(readdirSync(join(dataDir, 'files/main/pools/x'))).toContain(ownerFolder('device:ann'))
})

test('a file that no conversation names is deleted with one, unless it is new: its message may follow', async () => {
  const fresh = await sent(OTHER, 'fresh')
  const old = await sent(OTHER, 'old', 2 * HOUR_MS)
  said.delete(OTHER)
  await sent(MINE, 'x')
  await erase(MINE)
  expect([fresh, old].map(kept)).toEqual([true, false])
})

test('erasing a sender deletes every file of theirs, and of no other sender', async () => {
  const [ada, eve] = ['channel:x/bot/room/ada', 'channel:x/bot/room/eve']
  const path = await sent(ada, 'a')
  const other = await sent(eve, 'a')
  expect(await owned().erasedOwner(ada)).toBe(1)
  expect([path, other].map(kept)).toEqual([false, true])
})

test('a sender without files is named in no pool any more, whatever has deleted them', async () => {
  const [ada, eve, ben] = ['ada', 'eve', 'ben'].map((sender) => `channel:x/bot/room/${sender}`) as [string, string, string]
  const workspace = createWorkspace({ root: root(), forbidden: [], files: join(dataDir, 'files/main') })
  for (const session of [ada, eve, ben]) {
    const attachment = { owner: fileOwnerOfSession(session), bytes: Buffer.from('a'), extension: 'txt', pool: 'x' }
    said.set(session, [`[Document: a.txt] ${await workspace.attach(attachment)}`])
  }
  const inPool = () => readdirSync(join(dataDir, 'files/main/pools/x')).toSorted()
  const names = [ada, eve, ben].map((session) => ownerFolder(fileOwnerOfSession(session)))
  expect(inPool()).toEqual(names.toSorted())
  await owned().erasedOwner(ada)
  await erase(eve)
  expect(inPool()).toEqual([names[2]])
})

test('files that no conversation names any more are deleted after a day', async () => {
  const day = 25 * HOUR_MS
  const [named, gone, fresh] = [await sent(MINE, 'named', day), await sent(OTHER, 'gone', day), await sent(OTHER, 'fresh')]
  said.delete(OTHER)
  const paths = [MINE, OTHER].map((session) => `results/${ownerFolder(session)}`)
  for (const path of paths) {
    mkdirSync(join(dataDir, 'files/main', path), { recursive: true })
    utimesSync(join(dataDir, 'files/main', path), (NOW_MS - day) / 1000, (NOW_MS - day) / 1000)
  }
  await owned().sweep(new AbortController().signal)
  expect([named, gone, fresh, ...paths].map(kept)).toEqual([true, false, true, true, false])
})

test('files stay while a turn of their owner has not ended, because its conversation does not name them yet', async () => {
  const day = 25 * HOUR_MS
  const path = await sent(MINE, 'contract', day)
  const results = `results/${ownerFolder(MINE)}`
  mkdirSync(join(dataDir, 'files/main', results), { recursive: true })
  utimesSync(join(dataDir, 'files/main', results), (NOW_MS - day) / 1000, (NOW_MS - day) / 1000)
  said.delete(MINE)
  await sent(OTHER, 'x')
  open = [MINE]
  await owned().sweep(new AbortController().signal)
  await erase(OTHER)
  expect([path, results].map(kept)).toEqual([true, true])
  open = ['agent:help/ann/mine', 'ben/s']
  await owned().sweep(new AbortController().signal)
  expect([path, results].map(kept)).toEqual([false, false])
})

test('a file that a waiting turn of another conversation names stays, and the sweep deletes it once no conversation names it', async () => {
  const path = await sent(MINE, 'contract', 25 * HOUR_MS)
  open = [OTHER]
  expect(await erase(MINE)).toBe(0)
  await owned().sweep(new AbortController().signal)
  expect(kept(path)).toBe(true)
  open = []
  await owned().sweep(new AbortController().signal)
  expect(kept(path)).toBe(false)
})

test('attachments of an earlier release go to the senders whose conversations name them, and nothing is deleted', async () => {
  mkdirSync(join(root(), 'attachments'), { recursive: true })
  for (const name of [...FORMER, 'notes.md']) writeFileSync(join(root(), 'attachments', name), name)
  const chat = 'channel:x/bot/room/ada'
  said.set(MINE, [`look\n[Document: a.txt] attachments/${FORMER[0]}`])
  said.set(chat, [`[Document: b.pdf] attachments/${FORMER[1]} and attachments/${FORMER[0]}`])
  said.set('agent:help/ann/s', [`attachments/${FORMER[2]}`])
  const agents = [{ name: 'main', root: root() }]
  await owned().assignFormer(agents)
  const inFolder = (folder: string) => readdirSync(join(dataDir, 'files/main', folder)).toSorted()
  expect(inFolder('attachments/device_3aann')).toEqual([FORMER[0]])
  const ada = `attachments/${ownerFolder(fileOwnerOfSession(chat))}`
  expect(inFolder(ada)).toEqual([FORMER[0], FORMER[1]])
  expect(inFolder('former')).toEqual([FORMER[2], 'notes.md'].toSorted())
  for (const path of [`attachments/device_3aann/${FORMER[0]}`, `${ada}/${FORMER[0]}`])
    expect(statSync(join(dataDir, 'files/main', path)).nlink).toBe(1)
  said.set('eve/s', [`attachments/${FORMER[2]}`])
  await owned().assignFormer(agents)
  expect(inFolder('former')).toEqual([FORMER[2], 'notes.md'].toSorted())
  const workspace = createWorkspace({ root: root(), forbidden: [], files: join(dataDir, 'files/main') })
  const caller = { owner: 'device:ann', session: MINE, isOperator: false }
  expect(String(Buffer.from(await workspace.as({ caller }).read(`attachments/${FORMER[0]}`, { bytesMax: 99 })))).toBe(FORMER[0])
})
