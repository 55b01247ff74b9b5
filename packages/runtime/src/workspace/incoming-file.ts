/** A file that is received piece by piece. It lies in the data directory until a workspace attaches it. */
import { createHash, randomBytes } from 'node:crypto'
import { type FileHandle, mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { ByteBuffer } from '@sluice/kit'
import { AppError, type ReceivedFile } from '@sluice/sdk'

/** No agent has this name. */
const INCOMING = '.incoming'

/** Smaller pieces are written together: a write takes the disk a turn. */
const WRITTEN_BYTES = 1024 * 1024

/** Returns the folder of the files that are being received. */
export const incomingFolder = (dataDir: string): string => join(dataDir, 'files', INCOMING)

export class IncomingFile implements AsyncDisposable {
  readonly #path: string
  readonly #file: FileHandle
  readonly #hash = createHash('sha256')
  #length = 0
  readonly #waiting = new ByteBuffer()

  private constructor(path: string, file: FileHandle) {
    this.#path = path
    this.#file = file
  }

  static async create(dataDir: string): Promise<IncomingFile> {
    const folder = incomingFolder(dataDir)
    const path = join(folder, randomBytes(16).toString('hex'))
    await mkdir(folder, { recursive: true, mode: 0o700 }).catch(notStored)
    return new IncomingFile(path, await open(path, 'wx', 0o600).catch(notStored))
  }

  get length(): number {
    return this.#length
  }

  /** Resolves once there is room for the next piece, so that a sender waits for the disk. */
  async write(piece: Uint8Array): Promise<void> {
    this.#hash.update(piece)
    this.#length += piece.length
    this.#waiting.append(piece)
    if (this.#waiting.length >= WRITTEN_BYTES) await this.#flush()
  }

  async #flush(): Promise<void> {
    const bytes = this.#waiting.bytes()
    this.#waiting.clear()
    for (let at = 0; at < bytes.length; ) at += (await this.#file.write(bytes, at).catch(notStored)).bytesWritten
  }

  /** Resolves once the file is on stable storage. */
  async finish(): Promise<ReceivedFile> {
    await this.#flush()
    await this.#file.sync().catch(notStored)
    await this.#file.close().catch(notStored)
    return { path: this.#path, length: this.#length, sha256: this.#hash.digest('hex') }
  }

  /** Deletes the file, unless it was attached. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#file.close().catch(() => undefined)
    await rm(this.#path, { force: true })
  }
}

function notStored(cause: unknown): never {
  throw new AppError('unavailable', 'The file could not be stored', { cause })
}
