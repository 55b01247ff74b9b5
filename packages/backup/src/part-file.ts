/** A file that gets its name once it is complete and on stable storage. */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { AppError } from '@sluice/sdk'
import { syncFolder } from './write-durably.ts'

/** The bytes that are written between two syncs, so that a sync of the database on the same disk never waits for many of them. */
const SYNC_BYTES = 2 * 1024 * 1024
/** How long a paced writer rests after each sync, compared with the time that the bytes took. */
const REST_RATIO = 1
const REST_MS_MAX = 500
/** An incomplete file that was not written for this long was left behind by a process that has ended. */
const STALE_MS = 3_600_000

/** A file under a temporary name in the folder of its final name. */
export class PartFile {
  readonly file: string
  readonly #part: string
  readonly #handle: FileHandle
  readonly #isPaced: boolean
  #bytes = 0
  #unsynced = 0
  #sinceMs = performance.now()

  private constructor(file: string, part: string, handle: FileHandle, isPaced: boolean) {
    this.file = file
    this.#part = part
    this.#handle = handle
    this.#isPaced = isPaced
  }

  /** Throws `conflict` if the file exists, and errors of the file system. Removes what interrupted writers of the file left behind. */
  static async create(file: string, isPaced: boolean): Promise<PartFile> {
    if (existsSync(file)) throw new AppError('conflict', `${file} exists already.`)
    removeStaleParts(dirname(file), basename(file))
    const part = `${file}.${randomBytes(4).toString('hex')}.part`
    return new PartFile(file, part, await open(part, 'wx', 0o600), isPaced)
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The path under which the content can be read before the file has its name. */
  get path(): string {
    return this.#part
  }

  async write(chunk: Uint8Array): Promise<void> {
    for (let at = 0; at < chunk.length; ) at += (await this.#handle.write(chunk, at, chunk.length - at)).bytesWritten
    this.#bytes += chunk.length
    this.#unsynced += chunk.length
    if (this.#unsynced < SYNC_BYTES) return
    await this.#handle.datasync()
    if (this.#isPaced) await sleep(Math.min(REST_MS_MAX, REST_RATIO * (performance.now() - this.#sinceMs)))
    this.#unsynced = 0
    this.#sinceMs = performance.now()
  }

  /** Makes the content durable. Nothing is written afterwards. */
  async finish(): Promise<void> {
    await this.#handle.sync()
    await this.#handle.close()
  }

  /** Gives the finished file its name, durably. Throws `conflict` if another process has made a file of this name. */
  name(): void {
    if (existsSync(this.file)) throw new AppError('conflict', `${this.file} exists already.`)
    renameSync(this.#part, this.file)
    syncFolder(dirname(this.file))
  }

  /** Removes the file unless it has its name. */
  async discard(): Promise<void> {
    await this.#handle.close().catch(() => undefined)
    rmSync(this.#part, { force: true })
  }
}

/** Removes the incomplete files of names that begin with `prefix`, if nothing has been written to them for an hour. */
export function removeStaleParts(folder: string, prefix: string): void {
  for (const name of readdirSync(folder)) {
    if (!name.startsWith(prefix) || !/\.[0-9a-f]{8}\.part$/.test(name)) continue
    const path = join(folder, name)
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat && Date.now() - stat.mtimeMs > STALE_MS) rmSync(path, { force: true })
  }
}
