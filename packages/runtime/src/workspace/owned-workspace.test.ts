/** The files of people in a workspace: each caller opens only their own, by whatever path, and so do commands in a sandbox. */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import promises from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  AppError,
  attachmentPath,
  type FileCaller,
  type FileViewer,
  fileOwnerOfSession,
  type KeptBytes,
  ownerFolder,
  type Workspace,
} from '@sluice/sdk'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { COUNTED_BYTES_MIN } from './attach.ts'
import { settleAttachments } from './settle-attachments.ts'
import { createWorkspace } from './workspace.ts'

const SECRET = Buffer.from('PAYSLIP OF ANN')
const ANN: FileCaller = { owner: 'device:ann', session: 'ann/s', isOperator: false }
const BEN: FileCaller = { owner: 'channel:x/bot/ben', session: 'channel:x/bot/room/ben', isOperator: false }
const OWNER: FileCaller = { owner: 'device:owner', session: 'owner/s', isOperator: true }
const FORMER = '0123456789abcdef.txt'

let base: string
let root: string
let files: string
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'owned-')))
  root = join(base, 'workspace')
  files = join(base, 'files/main')
  mkdirSync(root)
})
afterEach(() => rmSync(base, { recursive: true }))

const all = () => createWorkspace({ root, forbidden: [base], files })
const as = (caller: FileCaller) => all().as({ caller })
const code = (error: AppError) => error.code
const read = (workspace: Workspace, path: string) =>
  workspace.read(path, { bytesMax: 1000 }).then((bytes) => Buffer.from(bytes).toString(), code)
const names = async (workspace: Workspace, path: string) =>
  workspace.list(path, { limit: 100 }).then(({ entries }) => entries.map(({ name }) => name), code)
const attachAnn = () => all().attach({ owner: ANN.owner, bytes: SECRET, extension: 'txt' })

test('an attachment is named by its owner and its whole hash, and lies outside of the workspace', async () => {
  const path = await attachAnn()
  expect(path).toBe(attachmentPath(ANN.owner, SECRET, 'txt'))
  expect(path).toMatch(/^attachments\/device_3aann\/[0-9a-f]{64}\.txt$/)
  expect(lstatSync(join(root, 'attachments')).isSymbolicLink()).toBe(true)
  expect(readFileSync(join(root, path))).toEqual(SECRET)
  expect(existsSync(join(files, path))).toBe(true)
})

test('its owner reads and lists it by each spelling, and no tool changes it', async () => {
  const path = await attachAnn()
  const ann = as(ANN)
  for (const spelling of [path, `./${path}`, path.replace('/', '//'), join(root, path)])
    expect(await read(ann, spelling)).toBe(String(SECRET))
  expect(await names(ann, 'attachments')).toEqual(['device_3aann'])
  expect((await names(ann, 'attachments/device_3aann')).length).toBe(1)
  expect((await ann.list('.', { limit: 9 })).entries).toMatchObject([{ name: 'attachments', kind: 'folder' }])
  expect(await ann.write(path, Buffer.from('x')).catch(code)).toBe('forbidden')
  expect(await ann.remove(path).catch(code)).toBe('forbidden')
})

describe.each([
  ['another sender', BEN],
  ['an operator', OWNER],
  ['the same person in another role', { ...ANN, owner: 'channel:x/bot/ann' }],
])('%s', (_, caller) => {
  test('neither opens, lists, changes nor deletes it, by any path', async () => {
    const path = await attachAnn()
    const other = as(caller)
    const file = path.slice(path.lastIndexOf('/') + 1)
    symlinkSync(join(files, path), join(root, 'link.txt'))
    symlinkSync('attachments/device_3aann', join(root, 'folder'))
    const ways = [
      path,
      `./${path}`,
      path.replace('/', '//'),
      `${path}/`,
      `attachments/./device_3aann/${file}`,
      join(root, path),
      join(files, path),
      `attachments/${ownerFolder(caller.owner)}/../device_3aann/${file}`,
      `x/../${path}`,
      `attachments/${file}`,
      'link.txt',
      `folder/${file}`,
      path.replaceAll('/', '\\'),
      path.toUpperCase(),
    ]
    for (const way of ways) {
      expect(await read(other, way), way).toMatch(/^(?:forbidden|not_found)$/)
      expect(await other.open(way, { bytesMax: 1000 }).then(() => 'opened', code), way).toMatch(/^(?:forbidden|not_found)$/)
      await other.write(way, Buffer.from('pay 9999')).catch(() => undefined)
      await other.remove(way).catch(() => undefined)
    }
    for (const way of ['attachments/device_3aann', 'folder', join(files, 'attachments'), join(root, 'attachments/device_3aann')])
      expect(await names(other, way), way).toMatch(/^(?:forbidden|not_found)$/)
    expect(await names(other, 'attachments')).toEqual([])
    expect(await read(as(ANN), path)).toBe(String(SECRET))
    expect(other.shown).toEqual([])
  })
})

test('a list for one owner looks at no folder of another', async () => {
  await attachAnn()
  for (const owner of ['device:zoe', 'device:amy']) await all().attach({ owner, bytes: SECRET, extension: 'txt' })
  const lstat = vi.spyOn(promises, 'lstat')
  syncBuiltinESMExports()
  try {
    expect(await names(as(ANN), 'attachments')).toEqual(['device_3aann'])
    const seen = lstat.mock.calls.map(([path]) => String(path))
    expect(seen.filter((path) => path.includes('device_3a'))).toEqual([expect.stringContaining('device_3aann')])
  } finally {
    lstat.mockRestore()
    syncBuiltinESMExports()
  }
  expect(await all().list('attachments', { limit: 2 })).toMatchObject({
    entries: [{ name: 'device_3aamy' }, { name: 'device_3aann' }],
    more: true,
  })
})

test('where file names ignore case, each spelling of the folder is claimed, and the names of files stay as they are', async () => {
  const path = await attachAnn()
  const { platform } = process
  vi.resetModules()
  Object.defineProperty(process, 'platform', { value: 'darwin' })
  try {
    const { createWorkspace: create } = await import('./workspace.ts')
    const folding = create({ root, forbidden: [join(root, 'secrets')], files })
    const own = folding.as({ caller: ANN })
    for (const first of ['Attachments', 'attachment\u017f', 'attach\u200bments'])
      expect(await read(own, path.replace('attachments', first))).toBe(String(SECRET))
    expect(await read(folding.as({ caller: BEN }), path.replace('attachments', 'ATTACHMENTS'))).toBe('forbidden')
    expect(await read(own, '\u017fecrets/key')).toBe('forbidden')
    const results = `results/${ownerFolder('ann/s')}`
    for (const name of ['Report.txt', 'report.txt']) await own.write(`${results}/${name}`, Buffer.from(name))
    expect(await names(own, results)).toEqual(['Report.txt', 'report.txt'])
  } finally {
    Object.defineProperty(process, 'platform', { value: platform })
    vi.resetModules()
  }
})

test('results of a session are open to its turns only', async () => {
  const path = `results/${ownerFolder('ann/s')}/1.txt`
  await as(ANN).write(path, SECRET)
  expect(await read(as(ANN), path)).toBe(String(SECRET))
  for (const caller of [BEN, OWNER, { ...ANN, session: 'ann/t' }, { ...ANN, session: null }]) {
    expect(await read(as(caller), path)).toBe('forbidden')
    expect(await as(caller).write(path, Buffer.from('x')).catch(code)).toBe('forbidden')
    expect(await names(as(caller), `results/${ownerFolder('ann/s')}`)).toBe('forbidden')
  }
  expect(existsSync(join(root, 'results'))).toBe(false)
  await as(ANN).write('results/2026/report.txt', SECRET)
  expect(await read(as(BEN), 'results/2026/report.txt')).toBe(String(SECRET))
})

test('results count with the attachments of their owner, each file once', async () => {
  await attachAnn()
  const seen: number[] = []
  const write = (viewer: FileViewer, path: string, length: number) => all().as(viewer).write(path, Buffer.alloc(length))
  const ann = { caller: ANN, check: ({ own }: KeptBytes) => void seen.push(own) }
  const results = `results/${ownerFolder('ann/s')}`
  await write(ann, `${results}/1.txt`, 100_000)
  await write(ann, `${results}/1.txt`, 50_000)
  await write({ ...ann, caller: { ...ANN, session: 'ann/t' } }, `results/${ownerFolder('ann/t')}/below/2.txt`, 20_000)
  await write(ann, 'notes.txt', 70_000)
  expect(seen.map((bytes) => bytes - COUNTED_BYTES_MIN)).toEqual([100_000, 50_000, 70_000])
  await all().attach({ ...ann, owner: ANN.owner, bytes: Buffer.from('x'), extension: 'txt' })
  expect(seen.at(-1)).toBe(70_000 + 2 * COUNTED_BYTES_MIN)
  await write({ caller: BEN, check: ann.check }, `results/${ownerFolder('channel:x/bot/room/ben')}/1.txt`, 30_000)
  expect(seen.at(-1)).toBe(30_000)
})

test('results count with what the linked accounts of their owner keep, whichever account writes', async () => {
  const seen: number[] = []
  const write = (caller: FileCaller, others: string[], length: number) =>
    all()
      .as({ caller, others, check: ({ own }: KeptBytes) => void seen.push(own) })
      .write(`results/${ownerFolder(caller.session ?? '')}/1.txt`, Buffer.alloc(length))
  await Promise.all([write(ANN, [BEN.owner], 100_000), write(BEN, [ANN.owner], 30_000)])
  expect(Math.max(...seen)).toBe(130_000)
})

test('a result beyond the share is not written', async () => {
  const refuse = () => {
    throw new AppError('share_used', 'used up')
  }
  const path = `results/${ownerFolder('ann/s')}/1.txt`
  expect(await all().as({ caller: ANN, check: refuse }).write(path, SECRET).catch(code)).toBe('share_used')
  expect(await read(as(ANN), path)).toBe('not_found')
})

test('results of strangers count for their pool', async () => {
  const seen: number[] = []
  const check = ({ pool }: KeptBytes) => void seen.push(pool)
  for (const sender of ['eve', 'max']) {
    const caller = { owner: `channel:x/bot/${sender}`, session: `channel:x/bot/room/${sender}`, isOperator: false }
    await all()
      .as({ caller, pool: 'x', check })
      .write(`results/${ownerFolder(caller.session)}/1.txt`, Buffer.alloc(20_000))
  }
  expect(seen).toEqual([20_000, 40_000])
})

test('a command is shown the attachments of its caller alone', async () => {
  await attachAnn()
  expect(as(ANN).shown).toEqual([join(files, 'attachments/device_3aann')])
  expect(as(BEN).shown).toEqual([])
})

describe('an attachment of an earlier release', () => {
  beforeEach(() => {
    mkdirSync(join(root, 'attachments/notes'), { recursive: true })
    writeFileSync(join(root, 'attachments', FORMER), SECRET)
    writeFileSync(join(root, 'attachments/notes/a.txt'), 'note')
  })

  test('is moved out of the workspace, and only operators open it while no conversation names it', async () => {
    await settleAttachments(root, files)
    expect(readdirSync(root)).toEqual(['attachments'])
    expect(readlinkSync(join(root, 'attachments'))).toBe('../files/main/attachments')
    for (const path of [`attachments/${FORMER}`, 'attachments/notes/a.txt', 'attachments/notes']) {
      expect(await read(as(ANN), path)).toMatch(/^(?:forbidden|not_found)$/)
      expect(await names(as(ANN), path)).toMatch(/^(?:forbidden|not_found)$/)
    }
    expect(await names(as(OWNER), 'attachments')).toEqual([FORMER, 'notes'])
    expect(await read(as(OWNER), `attachments/${FORMER}`)).toBe(String(SECRET))
    expect(await read(as(OWNER), 'attachments/notes/a.txt')).toBe('note')
    expect(await as(OWNER).write(`attachments/${FORMER}`, SECRET).catch(code)).toBe('forbidden')
  })

  test('has the old path for its owner', async () => {
    await settleAttachments(root, files)
    mkdirSync(join(files, 'attachments/device_3aann'))
    renameSync(join(files, 'former', FORMER), join(files, 'attachments/device_3aann', FORMER))
    expect(await read(as(ANN), `attachments/${FORMER}`)).toBe(String(SECRET))
    expect(await read(as(BEN), `attachments/${FORMER}`)).toBe('not_found')
    expect(await read(as(OWNER), `attachments/${FORMER}`)).toBe('not_found')
  })
})

test('a folder that a command puts in the place of the link holds no attachments', async () => {
  const path = await attachAnn()
  rmSync(join(root, 'attachments'))
  mkdirSync(join(root, 'attachments/device_3aann'), { recursive: true })
  writeFileSync(join(root, path), 'forged')
  expect(await read(as(ANN), path)).toBe(String(SECRET))
  await settleAttachments(root, files)
  expect(lstatSync(join(root, 'attachments')).isSymbolicLink()).toBe(true)
  expect(readdirSync(root).filter((name) => name.startsWith('attachments.before-')).length).toBe(1)
  rmSync(join(root, 'attachments'))
  symlinkSync(base, join(root, 'attachments'))
  await settleAttachments(root, files)
  expect(readlinkSync(join(root, 'attachments'))).toBe('../files/main/attachments')
})

test('an absolute link to the attachments, as Windows has it, is not made again for each command', async () => {
  await attachAnn()
  rmSync(join(root, 'attachments'))
  const target = `${join(files, 'attachments')}/`
  symlinkSync(target, join(root, 'attachments'))
  await settleAttachments(root, files)
  expect(readlinkSync(join(root, 'attachments'))).toBe(target)
})

test('a restored data directory keeps its attachments at another path', async () => {
  const path = await attachAnn()
  const moved = join(base, 'restored')
  mkdirSync(moved)
  renameSync(join(base, 'files'), join(moved, 'files'))
  renameSync(root, join(moved, 'workspace'))
  const workspace = createWorkspace({ root: join(moved, 'workspace'), forbidden: [], files: join(moved, 'files/main') })
  expect(await read(workspace.as({ caller: ANN }), path)).toBe(String(SECRET))
  expect(readFileSync(join(moved, 'workspace', path))).toEqual(SECRET)
  mkdirSync(root)
})

describe('the share of an owner', () => {
  const kept: { own: number; pool: number }[] = []
  beforeEach(() => void kept.splice(0))
  const attach = (owner: string, text: string, pool?: string) =>
    all().attach({ owner, bytes: Buffer.from(text), extension: 'txt', pool, check: (now) => void kept.push(now) })

  test('counts the files of linked accounts together', async () => {
    await attach('a', 'one')
    await all().attach({ owner: 'b', others: ['a', 'c'], bytes: Buffer.from('two'), extension: 'txt', check: (now) => void kept.push(now) })
    expect(kept.map(({ own }) => own)).toEqual([COUNTED_BYTES_MIN, 2 * COUNTED_BYTES_MIN])
  })

  test('counts every file once, a small one as 16 KB, and the files of a pool together', async () => {
    await attach('a', 'one', 'strangers')
    await attach('a', 'two', 'strangers')
    await attach('a', 'two', 'strangers')
    await attach('b', 'x'.repeat(COUNTED_BYTES_MIN + 1), 'strangers')
    await attach('c', 'three')
    const small = COUNTED_BYTES_MIN
    expect(kept).toEqual([
      { own: small, pool: small },
      { own: 2 * small, pool: 2 * small },
      { own: small + 1, pool: 3 * small + 1 },
      { own: small, pool: 0 },
    ])
  })

  test('is not exceeded by files that are saved at once, and nothing is kept of a refused one', async () => {
    const check = ({ own }: { own: number }) => {
      if (own > COUNTED_BYTES_MIN) throw new Error('full')
    }
    const saved = ['one', 'two', 'three'].map((text) => all().attach({ owner: 'a', bytes: Buffer.from(text), extension: 'txt', check }))
    expect((await Promise.allSettled(saved)).map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected'])
    expect(readdirSync(join(files, 'attachments/a')).length).toBe(1)
  })
})

test('a caller in a room opens only the attachments that its conversation names, and finds none by looking', async () => {
  const [direct, here] = [await attachAnn(), await all().attach({ owner: ANN.owner, bytes: Buffer.from('AGENDA'), extension: 'txt' })]
  const inRoom = as({ ...ANN, isOperator: true, names: (path) => path === here })
  expect([await read(inRoom, here), await read(inRoom, `./${here}`)]).toEqual(['AGENDA', 'AGENDA'])
  expect([await read(inRoom, direct), await names(inRoom, join(direct, '..'))]).toEqual(['forbidden', 'forbidden'])
  expect([await names(inRoom, 'attachments'), inRoom.shown]).toEqual([[], []])
  expect(await read(as(ANN), direct)).toBe(String(SECRET))
})

test('a session has the owner of its turns', () => {
  expect(fileOwnerOfSession('ann/s')).toBe('device:ann')
  expect(fileOwnerOfSession('agent:help/local/s')).toBe('local')
  expect(fileOwnerOfSession('agent:help/channel:x/bot/room/thread/ben')).toBe(BEN.owner)
  expect(fileOwnerOfSession('sop:01')).toBe('sop:01')
  expect(new Set(['a/b', 'a_2fb', 'A/b', 'a', 'é', 'e', `${'x'.repeat(200)}1`, `${'x'.repeat(200)}2`].map(ownerFolder)).size).toBe(8)
})
