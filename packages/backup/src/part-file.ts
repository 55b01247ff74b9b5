/** A file that gets its name once it is complete and on stable storage. */
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { syncFolder } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import type { Pace } from './pace.ts'

/** The bytes that are written between two syncs, so that a sync of the database on the same disk never waits for many of them. */
const SYNC_BYTES = 256 * 1024
/** An incomplete file that was not written for this long was left behind by a process that has ended. */
const STALE_MS = 3_600_000

/** A file under a temporary name in the folder of its final name. */
export class PartFile {
  readonly file: string
  readonly #part: string
  readonly #handle: FileHandle
  readonly #pace: Pace | undefined
  #bytes = 0
  #unsynced = 0

  private constructor(file: string, part: string, handle: FileHandle, pace: Pace | undefined) {
    this.file = file
    this.#part = part
    this.#handle = handle
    this.#pace = pace
  }

  /** Throws `conflict` if the file exists, and errors of the file system. Removes what interrupted writers of the file left behind. */
  static async create(file: string, pace: Pace | undefined): Promise<PartFile> {
    if (existsSync(file)) throw new AppError('conflict', `${file} exists already.`)
    removeStaleParts(dirname(file), basename(file))
    const part = `${file}.${randomBytes(4).toString('hex')}.part`
    return new PartFile(file, part, await open(part, 'wx', 0o600), pace)
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
    this.#unsynced = 0
    await this.#pace?.rest()
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
