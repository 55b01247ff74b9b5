/**
 * The procedures on disk as they are now, for operators: definitions, problems, and the procedures in the workspace, where the agent
 * can write. A new or changed procedure there is loaded only after an operator has accepted exactly its content. An adopted procedure
 * moves out of the workspace.
 */
import { lstat, mkdir, rm, rmdir, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { nearestName, requireShownHash, SerialQueue } from '@sluice/kit'
import { AppError, type Clock, type KeyValue } from '@sluice/sdk'
import type { SopDefinition } from '../definition/definition.ts'
import { type Agreed, createAgreements } from './agreements.ts'
import type { OpenedSopFiles, SopFiles, SopTexts } from './edit-files.ts'
import type { LibrarySettings } from './folder-library.ts'
import type { LoadedSop, WaitingSop } from './load-sop.ts'
import type { LoadedSops, SopSource } from './load-sops.ts'

export type { OpenedSopFiles, SopFiles, SopTexts } from './edit-files.ts'

/** The loaded procedures, their problems, and the procedures that wait for an operator. */
export interface ReadSops extends LoadedSops {
  /** The absolute path of the folder of procedures. */
  readonly folder: string
  /** The same folder; null if the agent can write it, so that no file there is opened or written. */
  readonly editable: string | null
  /** The procedures in the workspace that operators have accepted. */
  readonly agreed: Agreed
}

export interface AdoptedSops {
  /** The new folders of the adopted procedures. */
  readonly adopted: readonly string[]
  /** The folders of procedures that stay in the workspace, because no operator has accepted their present content. */
  readonly waiting: readonly string[]
}

export interface ProcedureFilesOptions {
  /** Returns the settings in force; called for each request. */
  readonly settings: () => LibrarySettings
  /** The durable keys of the owner `sop`. */
  readonly keyValue: KeyValue
  readonly clock: Clock
}

const WRITES_WAITING_MAX = 100

export class ProcedureFiles {
  readonly #options: ProcedureFilesOptions
  readonly #listeners = new Set<() => Promise<void>>()
  /** Nothing else writes files between the check of a version or a name and the write after it. */
  readonly #writes = new SerialQueue({ name: 'the files of procedures', tasksMax: WRITES_WAITING_MAX })

  constructor(options: ProcedureFilesOptions) {
    this.#options = options
  }

  /** Calls `listener`, and waits for it, after an operator has accepted or moved procedures. Returns an unsubscribe function. */
  readonly onChange = (listener: () => Promise<void>): (() => void) => {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Reads every procedure without putting it in force. */
  readonly read = async (): Promise<ReadSops> => {
    const agreed = await createAgreements(this.#options.keyValue).all()
    const { folder, isAgentWritable } = this.#source()
    return { ...(await this.#load(agreed)), folder, editable: isAgentWritable ? null : folder, agreed }
  }

  /** Throws `invalid_request` for a shortened hash, and `conflict` unless the content of the folder has the hash. */
  readonly accept = async (folderName: string, givenHash: string): Promise<{ readonly folder: string; readonly hash: string }> => {
    const { folder, hash } = waitingIn(await this.read(), folderName)
    requireShownHash({ given: givenHash, present: hash, name: folder, lookAgain: `'sluice sop waiting ${basename(folder)}'` })
    await createAgreements(this.#options.keyValue).agree(folder, hash)
    await this.#changed()
    return { folder, hash }
  }

  /** Moves the accepted procedures out of the workspace, or only the one in the folder. Throws `conflict` if the new folder exists. */
  readonly adopt = (folderName?: string): Promise<AdoptedSops> => this.#writes.run(() => this.#adopt(folderName))

  async #adopt(folderName: string | undefined): Promise<AdoptedSops> {
    const { folder, agreed } = await this.read()
    const agreements = createAgreements(this.#options.keyValue)
    const inWorkspace = (await this.#load(new Map())).waiting
    const selected = inWorkspace.filter((sop) => folderName === undefined || basename(sop.folder) === folderName)
    const isAccepted = (sop: WaitingSop) => agreed.get(sop.folder) === sop.hash
    const adopted: string[] = []
    try {
      for (const sop of selected.filter(isAccepted)) {
        adopted.push(await moveToFolder(sop, folder))
        await agreements.forget(sop.folder)
      }
    } finally {
      if (adopted.length > 0) await this.#changed()
    }
    return { adopted, waiting: selected.filter((sop) => !isAccepted(sop)).map((sop) => sop.folder) }
  }

  /** Reads both files of a folder. Throws `forbidden` if the agent can write there, and as `readSopFiles` does. */
  readonly open = async (folderName: string): Promise<OpenedSopFiles> => {
    const { readSopFiles } = await import('./edit-files.ts')
    return readSopFiles(this.#editable(), folderName)
  }

  /** Checks texts that are in no file yet, also for a name that another folder has. */
  readonly check = async (folderName: string, texts: SopTexts): Promise<LoadedSop> => {
    const { settings, clock } = this.#options
    const { checkSopTexts } = await import('./edit-files.ts')
    const checked = await checkSopTexts(texts, { ...settings(), nowMs: clock.nowMs() })
    const { definition, ...others } = checked
    const other = definition && (await this.read()).definitions.find(({ name }) => name === definition.name)
    if (!other || other.folder === join(this.#source().folder, folderName)) return checked
    const message = `"${other.name}" is the name of the procedure in ${other.folder}`
    return { ...others, problems: [...checked.problems, { file: 'SOP.toml', message, severity: 'error' }] }
  }

  /** Writes both files and loads them. Throws `invalid_request` for texts with errors, and as `open` and `writeSopFiles` do. Resolves to their version. */
  readonly write = async (files: SopFiles): Promise<string> => {
    const version = await this.#writes.run(() => this.#write(files))
    await this.#changed()
    return version
  }

  async #write(files: SopFiles): Promise<string> {
    const root = this.#editable()
    const { problems } = await this.check(files.folder, files)
    const error = problems.find(({ severity }) => severity === 'error')
    if (error) throw new AppError('invalid_request', `${error.file}${error.line === undefined ? '' : `:${error.line}`}: ${error.message}`)
    const { writeSopFiles } = await import('./edit-files.ts')
    return writeSopFiles(root, files)
  }

  #source(): SopSource {
    return this.#options.settings().sources[0]
  }

  /** Returns the folder of procedures. */
  #editable(): string {
    const { folder, isAgentWritable } = this.#source()
    if (!isAgentWritable) return folder
    throw new AppError(
      'forbidden',
      `The agent can write ${folder}, so no procedure is edited there: set \`[sop] sops_dir\` to another folder`,
    )
  }

  async #load(agreed: Agreed): Promise<LoadedSops> {
    const { settings, clock } = this.#options
    // Imports the cron library, which most processes do not need.
    const { loadSops } = await import('./load-sops.ts')
    return loadSops({ ...settings(), agreed, nowMs: clock.nowMs() })
  }

  async #changed(): Promise<void> {
    for (const listener of this.#listeners) await listener()
  }
}

/** Returns the procedure with the name. Throws `not_found` with the nearest name, and with the number of folders that have errors. */
export function sopNamed({ definitions, broken }: LoadedSops, name: string): SopDefinition {
  const found = definitions.find((definition) => definition.name === name)
  if (found) return found
  const nearest = nearestName(
    name,
    definitions.map((definition) => definition.name),
  )
  const hint = nearest === undefined ? '.' : `; is it "${nearest}"?`
  const errors = broken > 0 ? ` Folders with errors: ${broken}; 'sluice sop validate' shows them.` : ''
  throw new AppError('not_found', `There is no procedure "${name}"${hint}${errors}`)
}

/** Returns the waiting procedure in the folder. Throws `not_found` if none waits there. */
export function waitingIn({ waiting, agreed }: ReadSops, folderName: string): WaitingSop {
  const found = waiting.find(({ folder }) => basename(folder) === folderName)
  if (found) return found
  const isAccepted = [...agreed.keys()].some((folder) => basename(folder) === folderName)
  throw new AppError(
    'not_found',
    isAccepted
      ? `'${folderName}' is accepted as it is`
      : `no procedure in '${folderName}' waits; 'sluice sop waiting' lists the waiting procedures`,
  )
}

/**
 * Writes the accepted content to a new folder, then removes the files in the workspace. It does not rename them: the agent could have
 * changed a file meanwhile, or replaced it with a link.
 */
async function moveToFolder({ folder: from, toml, md }: WaitingSop, folder: string): Promise<string> {
  const to = join(folder, basename(from))
  await mkdir(folder, { recursive: true, mode: 0o700 })
  try {
    await mkdir(to, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    throw new AppError('conflict', `${to} exists already: remove one of the two procedures`)
  }
  if (toml !== null) await writeFile(join(to, 'SOP.toml'), toml)
  if (md !== null) await writeFile(join(to, 'SOP.md'), md)
  if (!(await lstat(from)).isDirectory()) return to // A link: the files in the linked folder stay.
  for (const name of ['SOP.toml', 'SOP.md']) await rm(join(from, name), { force: true })
  await rmdir(from).catch(() => undefined) // A folder with other files stays.
  return to
}
