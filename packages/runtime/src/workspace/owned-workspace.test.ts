/** The files of people in a workspace: each caller opens only their own, by whatever path, and so do commands in a sandbox. */
import { createHash } from 'node:crypto'
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
  utimesSync,
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
  type FileLimit,
  type FileShare,
  fileOwnerOfSession,
  type KeptBytes,
  ownerFolder,
  type Workspace,
} from '@sluice/sdk'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { COUNTED_BYTES_MIN } from './make-room.ts'
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
  const small = COUNTED_BYTES_MIN
  const kept: KeptBytes[] = []
  beforeEach(() => void kept.splice(0))
  const limit = (own: number, pool = Number.POSITIVE_INFINITY): FileLimit => ({
    max: { own, pool },
    check(now) {
      kept.push({ ...now })
      if (now.own > own || now.pool > pool) throw new AppError('share_used', 'used up')
    },
  })
  const attach = (owner: string, text: string, share: FileShare = { limit: limit(1e9, 1e9) }) =>
    all()
      .attach({ owner, bytes: Buffer.from(text), extension: 'txt', ...share })
      .then(() => 'kept', code)
  const callerOf = (owner: string): FileCaller => ({ owner, session: `${owner}/s`, isOperator: false })
  /** Writes a result of the owner, whose conversation has its name. Older results have older times. */
  const result = async (owner: string, name: string, share: FileShare & { readonly length?: number }) => {
    const path = `results/${ownerFolder(`${owner}/s`)}/${name}`
    const answer = await all()
      .as({ ...share, caller: callerOf(owner) })
      .write(path, Buffer.alloc(share.length ?? 1))
      .then(() => 'kept', code)
    if (answer === 'kept') utimesSync(join(files, path), results, results++)
    return answer
  }
  let results = 1_000_000
  const resultsOf = (owner: string) => names(all().as({ caller: callerOf(owner) }), `results/${ownerFolder(`${owner}/s`)}`)

  test('counts the files of linked accounts together', async () => {
    await attach('a', 'one')
    await attach('b', 'two', { others: ['a', 'c'], limit: limit(1e9) })
    await result('c', '1.txt', { others: ['a', 'b'], limit: limit(1e9) })
    expect(kept.map(({ own }) => own)).toEqual([small, 2 * small, 3 * small])
  })

  test('asks for the size of an attachment once, so that many files stay quick to count, and leaves out a deleted file', async () => {
    await attach('a', 'one')
    await attach('a', 'two')
    const folder = join(files, 'attachments', ownerFolder('a'))
    const fileOf = (text: string) => join(folder, `${createHash('sha256').update(text).digest('hex')}.txt`)
    // No tool changes an attachment. The larger file shows that its size is not read again.
    writeFileSync(fileOf('one'), Buffer.alloc(5 * small))
    await attach('a', 'three')
    rmSync(fileOf('two'))
    await attach('a', 'four')
    expect(kept.map(({ own }) => own)).toEqual([small, 2 * small, 3 * small, 3 * small])
  })

  test('counts every file once, a small one as 16 KB, and the files of a pool together', async () => {
    const strangers = { pool: 'strangers', limit: limit(1e9, 1e9) }
    await attach('a', 'one', strangers)
    await attach('a', 'two', strangers)
    await attach('a', 'two', strangers)
    await attach('b', 'x'.repeat(small + 1), strangers)
    await attach('c', 'three')
    expect(kept).toEqual([
      { own: small, pool: small },
      { own: 2 * small, pool: 2 * small },
      { own: small + 1, pool: 3 * small + 1 },
      { own: small, pool: 0 },
    ])
  })

  test('is not exceeded by files that are saved at once, and nothing is kept of a refused one', async () => {
    const share = { limit: limit(small) }
    const saved = ['one', 'two', 'three'].map((text) => attach('a', text, share))
    expect(await Promise.all(saved)).toEqual(['kept', 'share_used', 'share_used'])
    expect(readdirSync(join(files, 'attachments/a')).length).toBe(1)
  })

  test('is free for attachments: the oldest results are removed, and only attachments refuse a further one', async () => {
    const share = { limit: limit(3 * small) }
    for (const name of ['1.txt', '2.txt', '3.txt']) expect(await result('a', name, share)).toBe('kept')
    expect(await attach('a', 'one', share)).toBe('kept')
    expect(await resultsOf('a')).toEqual(['2.txt', '3.txt'])
    expect([await attach('a', 'two', share), await attach('a', 'three', share)]).toEqual(['kept', 'kept'])
    expect(await resultsOf('a')).toEqual([])
    expect(await attach('a', 'four', share)).toBe('share_used')
    expect(await result('a', '4.txt', share)).toBe('share_used')
    const path = `results/${ownerFolder('a/s')}/1.txt`
    const gone = all()
      .as({ caller: callerOf('a') })
      .read(path, { bytesMax: 100 })
    await expect(gone).rejects.toThrow(`'${path}' is not kept any more: results make room for newer files. Repeat the call that gave it`)
  })

  test('a newer result takes the place of older ones, and of the one that it replaces', async () => {
    const share = { limit: limit(3 * small) }
    for (const name of ['1.txt', '2.txt', '3.txt']) await result('a', name, share)
    expect(await result('a', '3.txt', share)).toBe('kept')
    expect(await resultsOf('a')).toEqual(['1.txt', '2.txt', '3.txt'])
    expect(await result('a', '4.txt', { ...share, length: 2 * small })).toBe('kept')
    expect(await resultsOf('a')).toEqual(['3.txt', '4.txt'])
  })

  test('a file without room removes no result', async () => {
    const share = { limit: limit(2 * small) }
    await attach('a', 'one', share)
    await result('a', '1.txt', share)
    expect(await result('a', '2.txt', { ...share, length: 2 * small })).toBe('share_used')
    expect(await attach('a', 'x'.repeat(2 * small), share)).toBe('share_used')
    expect(await resultsOf('a')).toEqual(['1.txt'])
  })

  test('of a pool is free for attachments too, and the results of its owners alone make room', async () => {
    const share = { pool: 'strangers', limit: limit(1e9, 3 * small) }
    await result('listed', '1.txt', { limit: limit(1e9) })
    for (const owner of ['a', 'b', 'c']) await result(owner, '1.txt', share)
    expect([await attach('d', 'one', share), await attach('d', 'two', share)]).toEqual(['kept', 'kept'])
    expect(await Promise.all(['listed', 'a', 'b', 'c'].map(resultsOf))).toEqual([['1.txt'], [], [], ['1.txt']])
    expect([await attach('a', 'three', share), await attach('b', 'four', share)]).toEqual(['kept', 'share_used'])
    expect(await resultsOf('c')).toEqual([])
  })

  test('without a limit no file is looked at', async () => {
    await result('a', '1.txt', {})
    const readdir = vi.spyOn(promises, 'readdir')
    syncBuiltinESMExports()
    try {
      await result('a', '2.txt', { pool: 'strangers', others: ['b'] })
      await attach('a', 'one', { pool: 'strangers', others: ['b'] })
      expect(readdir).not.toHaveBeenCalled()
      await attach('a', 'two')
      expect(readdir).toHaveBeenCalled()
    } finally {
      readdir.mockRestore()
      syncBuiltinESMExports()
    }
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
