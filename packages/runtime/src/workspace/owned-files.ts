/** Deletes the files of people with the conversations that name them, and finds the owners of files that an earlier release saved. */
import { copyFile, link, lstat, mkdir, readdir, rename, rm, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import {
  ATTACHMENTS,
  agentOfSession,
  type Clock,
  fileOwnerOfSession,
  isFormerAttachment,
  type Logger,
  namedAttachments,
  ownerFolder,
  parseAgentKey,
  parseChatSession,
  type SessionRow,
  type Store,
} from '@sluice/sdk'
import { IncomingFile, incomingFolder } from './incoming-file.ts'
import { attachedBy, resultsBy } from './make-room.ts'
import { attachmentsOf, FORMER, filesFolder, OWNERS, ownersFolder, POOLS, RESULTS, resultsOf } from './owned-places.ts'
import { areUnassigned, markAssigned, settleAttachments } from './settle-attachments.ts'

const PAGE_ROWS = 500
const HOUR_MS = 3_600_000
/** A file that no conversation names is kept for this time: the message that names it may not be written yet. */
const UNNAMED_MS = 24 * HOUR_MS

export interface OwnedFilesOptions {
  readonly store: Pick<Store, 'sessions' | 'turns'>
  readonly dataDir: string
  readonly clock: Pick<Clock, 'nowMs'>
  readonly log: Pick<Logger, 'info'>
}

/** The names of files in the folder of their owner. */
type Names = ReadonlySet<string>

export class OwnedFiles {
  readonly #options: OwnedFilesOptions

  constructor(options: OwnedFilesOptions) {
    this.#options = options
  }

  /** Creates a file for bytes that arrive piece by piece. */
  receive(): Promise<IncomingFile> {
    return IncomingFile.create(this.#options.dataDir)
  }

  /** Resolves to the bytes of the attachments of an owner, as its share counts them. */
  attachedBy(agent: string, owner: string): Promise<number> {
    return attachedBy(filesFolder(this.#options.dataDir, agent), ownerFolder(owner))
  }

  /** Resolves to the attachments that the conversation names. Call it before the conversation is erased. */
  namedBy(session: string): Promise<Names> {
    return namedIn(this.#options.store, [session])
  }

  /**
   * Deletes the files of an erased conversation: its results, and the attachments that no other conversation of its owner names, if it named
   * them or they are old. While a turn of the owner has not ended, whose conversation may not name its attachments yet, the sweep deletes
   * them later. Resolves to the number of deleted files.
   */
  async erased(session: string, named: Names): Promise<number> {
    const { store, dataDir, clock } = this.#options
    const files = filesFolder(dataDir, agentOfSession(session))
    const owner = ownerFolder(fileOwnerOfSession(session))
    const results = await this.erasedResults(session)
    const present = await filesIn(join(files, ATTACHMENTS, owner))
    if (present.length === 0) return results
    if (ownersOf(await store.turns.openSessions()).has(ownerPath(session))) return results
    const kept = await namedIn(store, await sessionsOfOwner(store, session))
    const beforeMs = clock.nowMs() - HOUR_MS
    const gone = present.filter(({ name, modifiedAtMs }) => !kept.has(name) && (named.has(name) || modifiedAtMs < beforeMs))
    await removeFiles(files, owner, gone)
    return results + gone.length
  }

  /** Deletes the results of an erased conversation. Resolves to their number. */
  async erasedResults(session: string): Promise<number> {
    const files = filesFolder(this.#options.dataDir, agentOfSession(session))
    const removed = await removeFolder(resultsOf(files, session))
    await forgetResults(files, ownerFolder(fileOwnerOfSession(session)))
    return removed
  }

  /** Deletes all attachments and results that the owner of a session has with its agent, and what names the owner. Resolves to their number. */
  async erasedOwner(session: string): Promise<number> {
    const files = filesFolder(this.#options.dataDir, agentOfSession(session))
    const owner = fileOwnerOfSession(session)
    let removed = await removeFolder(attachmentsOf(files, owner))
    for (const name of await readdir(ownersFolder(files, ownerFolder(owner))).catch(() => []))
      removed += await removeFolder(join(files, RESULTS, name))
    await forgetResults(files, ownerFolder(owner))
    await leavePools(files, ownerFolder(owner))
    return removed
  }

  /**
   * Deletes the files that no conversation names any more, once they are a day old. A turn that waits for a person is not in its conversation
   * yet, so the files of its owner stay.
   */
  async sweep(signal: AbortSignal): Promise<void> {
    const { store, dataDir, clock, log } = this.#options
    const beforeMs = clock.nowMs() - UNNAMED_MS
    // A daemon that was killed has left them.
    for (const { name, modifiedAtMs } of await filesIn(incomingFolder(dataDir)))
      if (modifiedAtMs < beforeMs) await rm(join(incomingFolder(dataDir), name), { force: true })
    const stale = new Map<string, { readonly files: string; readonly owner: string; readonly names: Set<string> }>()
    const results = new Set<string>()
    for (const agent of await foldersIn(join(dataDir, 'files'))) {
      const files = filesFolder(dataDir, agent)
      for (const owner of await foldersIn(join(files, ATTACHMENTS))) {
        const old = (await filesIn(join(files, ATTACHMENTS, owner))).filter(({ modifiedAtMs }) => modifiedAtMs < beforeMs)
        if (old.length > 0) stale.set(`${agent}/${owner}`, { files, owner, names: new Set(old.map(({ name }) => name)) })
      }
      for (const name of await foldersIn(join(files, RESULTS))) {
        const folder = join(files, RESULTS, name)
        if (((await lstat(folder).catch(() => undefined))?.mtimeMs ?? beforeMs) < beforeMs) results.add(folder)
      }
    }
    if (stale.size + results.size === 0) return
    const open = await store.turns.openSessions()
    for (const id of open) results.delete(resultsOf(filesFolder(dataDir, agentOfSession(id)), id))
    for (const owner of ownersOf(open)) stale.delete(owner)
    for await (const { id } of allSessions(store)) {
      if (signal.aborted) return
      const agent = agentOfSession(id)
      results.delete(resultsOf(filesFolder(dataDir, agent), id))
      const found = stale.get(ownerPath(id))
      if (found) for (const name of await namedIn(store, [id])) found.names.delete(name)
    }
    let deleted = 0
    for (const { files, owner, names } of stale.values()) {
      // A file that was sent again meanwhile is new.
      const present = await filesIn(join(files, ATTACHMENTS, owner))
      const old = present.filter(({ name, modifiedAtMs }) => names.has(name) && modifiedAtMs < beforeMs)
      await removeFiles(files, owner, old)
      deleted += old.length
    }
    for (const folder of results) deleted += await removeFolder(folder)
    for (const agent of results.size > 0 ? await foldersIn(join(dataDir, 'files')) : [])
      for (const owner of await foldersIn(join(filesFolder(dataDir, agent), OWNERS)))
        await forgetResults(filesFolder(dataDir, agent), owner)
    if (deleted > 0) log.info('deleted files that no conversation names any more', { files: deleted })
  }

  /**
   * Gives the attachments that an earlier release saved to the owners of the conversations that name them; operators keep the others.
   * Runs before the first message, so that every conversation is one of the earlier release.
   */
  async assignFormer(agents: Iterable<{ readonly name: string; readonly root: string }>): Promise<void> {
    const { store, dataDir, log } = this.#options
    const waiting = new Map<string, Names>()
    for (const { name, root } of agents) {
      const files = filesFolder(dataDir, name)
      if ((await lstat(join(root, ATTACHMENTS)).catch(() => undefined))?.isDirectory()) await settleAttachments(root, files)
      if (!(await areUnassigned(files))) continue
      const names = (await filesIn(join(files, FORMER))).map((file) => file.name).filter(isFormerAttachment)
      waiting.set(files, new Set(names))
    }
    if (waiting.size === 0) return
    const owned = new Set<string>()
    if ([...waiting.values()].some(({ size }) => size > 0)) {
      for await (const { id } of allSessions(store)) {
        const files = filesFolder(dataDir, agentOfSession(id))
        const names = waiting.get(files)
        if (!names || names.size === 0) continue
        for (const name of await namedIn(store, [id])) {
          if (!names.has(name)) continue
          await own(files, name, { owner: fileOwnerOfSession(id), isFirst: !owned.has(join(files, FORMER, name)) })
          owned.add(join(files, FORMER, name))
        }
      }
    }
    // The first owner has a link to the same file, and each other one a copy: a file with several names is not opened.
    for (const path of owned) await rm(path, { force: true })
    for (const files of waiting.keys()) await markAssigned(files)
    log.info('the attachments of the earlier release belong to the senders whose conversations name them', { files: owned.size })
  }
}

/** The owner of a session below the folder with the files of all agents. */
const ownerPath = (session: string): string => `${agentOfSession(session)}/${ownerFolder(fileOwnerOfSession(session))}`

const ownersOf = (sessions: readonly string[]): ReadonlySet<string> => new Set(sessions.map(ownerPath))

const isDone = [() => true, () => false] as const

/** Gives a former attachment to an owner too. */
async function own(files: string, name: string, { owner, isFirst }: { readonly owner: string; readonly isFirst: boolean }): Promise<void> {
  const folder = attachmentsOf(files, owner)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const [from, to] = [join(files, FORMER, name), join(folder, name)]
  if (await lstat(to).catch(() => undefined)) return
  if (isFirst && (await link(from, to).then(...isDone))) return
  await copyFile(from, `${to}.part`)
  await rename(`${to}.part`, to)
}

/** Returns the ends of the names of all attachments that these sessions name. */
async function namedIn({ sessions }: Pick<Store, 'sessions'>, ids: readonly string[]): Promise<Names> {
  const names = new Set<string>()
  for (const id of ids) {
    for (let after = 0; ; ) {
      const page = await sessions.messagesByTurn(id, { after, limit: PAGE_ROWS })
      for (const { messages } of page)
        for (const { content } of messages)
          for (const text of typeof content === 'string' ? [content] : content.map((part) => ('text' in part ? part.text : '')))
            for (const path of namedAttachments(text)) names.add(path.slice(path.lastIndexOf('/') + 1))
      const last = page.at(-1)
      if (!last || page.length < PAGE_ROWS) break
      after = last.upTo
      // A conversation may be long: other work gets its turn between the pages.
      await setImmediate()
    }
  }
  return names
}

/** Lists the sessions of the owner of this one, with the same agent. */
async function sessionsOfOwner(store: Pick<Store, 'sessions'>, session: string): Promise<string[]> {
  const chat = parseChatSession(session)
  const { key } = parseAgentKey(session)
  const first = key.slice(0, key.indexOf('/') + 1)
  const ends = { prefix: first, ...(chat && { suffix: key.slice(key.lastIndexOf('/')) }) }
  const found: string[] = []
  for await (const { id } of allSessions(store, ends))
    if (id !== session && agentOfSession(id) === agentOfSession(session) && fileOwnerOfSession(id) === fileOwnerOfSession(session))
      found.push(id)
  return found
}

async function* allSessions(
  { sessions }: Pick<Store, 'sessions'>,
  ends: { readonly prefix?: string; readonly suffix?: string } = {},
): AsyncGenerator<SessionRow> {
  for (let before: SessionRow | undefined; ; ) {
    const page: SessionRow[] = await sessions.list({ limit: PAGE_ROWS, ...ends, ...(before && { before }) })
    yield* page
    before = page.at(-1)
    if (page.length < PAGE_ROWS) return
  }
}

interface FoundFile {
  readonly name: string
  readonly modifiedAtMs: number
}

async function filesIn(folder: string): Promise<FoundFile[]> {
  const found: FoundFile[] = []
  for (const name of await readdir(folder).catch(() => [])) {
    const status = await lstat(join(folder, name)).catch(() => undefined)
    if (status?.isFile()) found.push({ name, modifiedAtMs: status.mtimeMs })
  }
  return found
}

const foldersIn = async (folder: string): Promise<string[]> =>
  (await readdir(folder, { withFileTypes: true }).catch(() => [])).filter((entry) => entry.isDirectory()).map(({ name }) => name)

/** Deletes attachments of an owner. An owner without any leaves no trace. */
async function removeFiles(files: string, owner: string, gone: readonly FoundFile[]): Promise<void> {
  const folder = join(files, ATTACHMENTS, owner)
  for (const { name } of gone) await rm(join(folder, name), { force: true })
  if (await rmdir(folder).then(...isDone)) await leavePools(files, owner)
}

/** Removes the conversations without results from the list of an owner. */
async function forgetResults(files: string, owner: string): Promise<void> {
  const folder = ownersFolder(files, owner)
  for (const name of await readdir(folder).catch(() => []))
    if (!(await lstat(join(files, RESULTS, name)).catch(() => undefined))) await rm(join(folder, name), { force: true })
  if (await rmdir(folder).then(...isDone)) await leavePools(files, owner)
}

/** Takes an owner without files out of the pools, whose entries name senders. */
async function leavePools(files: string, owner: string): Promise<void> {
  if ((await attachedBy(files, owner)) > 0 || (await resultsBy(files, owner)).length > 0) return
  for (const pool of await foldersIn(join(files, POOLS))) await rm(join(files, POOLS, pool, owner), { force: true })
}

async function removeFolder(folder: string): Promise<number> {
  const files = (await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => [])).filter((entry) => !entry.isDirectory())
  await rm(folder, { recursive: true, force: true })
  return files.length
}
