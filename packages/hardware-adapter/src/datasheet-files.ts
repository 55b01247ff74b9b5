/** The folder of data sheets: names that stay inside it, files that appear whole or not at all. */
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '@sluice/sdk'

export const DATASHEET_BYTES_MAX = 20 * 1024 * 1024
/** Kept at a time. */
const FILES_MAX = 200
const NAME_CHARS_MAX = 64
const PDF_MAGIC = '%PDF-'
const PART = '.part'
/** Of a download that a crash cut off. */
const LEFTOVER_MS = 60 * 60 * 1000

export interface Datasheet {
  /** As `read` takes it. */
  readonly name: string
  readonly path: string
  readonly bytes: number
}

/** Throws `invalid_request` for a name of which nothing is left that a file could be called. */
export function datasheetName(device: string): string {
  const name = device
    .toLowerCase()
    .replace(/\.pdf$/, '')
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_|_$/g, '')
    .slice(0, NAME_CHARS_MAX)
  if (name === '') throw new AppError('invalid_request', 'device_name needs letters or digits, such as BME280')
  return name
}

export class DatasheetFiles {
  readonly #folder: string
  #part = 0

  constructor(dataDir: string) {
    this.#folder = join(dataDir, 'hardware/datasheets')
  }

  /** By name. */
  async list(): Promise<readonly Datasheet[]> {
    const names = (await readdir(this.#folder).catch(noFolder)).filter((file) => /^[a-z0-9_]+\.pdf$/.test(file)).slice(0, FILES_MAX)
    const found = await Promise.all(names.toSorted().map((file) => this.find(file.slice(0, -'.pdf'.length))))
    return found.filter((sheet) => sheet !== undefined)
  }

  async find(name: string): Promise<Datasheet | undefined> {
    const path = this.#pathOf(name)
    const facts = await lstat(path).catch(() => undefined)
    return facts?.isFile() ? { name, path, bytes: facts.size } : undefined
  }

  async read({ path }: Datasheet): Promise<Uint8Array> {
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
    try {
      const { size } = await file.stat()
      if (size > DATASHEET_BYTES_MAX) throw tooLarge()
      return await file.readFile()
    } finally {
      await file.close()
    }
  }

  /**
   * Keeps what the stream brings as that data sheet, in place of an older one. Throws `invalid_request` for what is no PDF,
   * `too_large`, `conflict` when as many are kept as may be, and `unavailable` where the disk is full or may not be written.
   */
  async keep(name: string, stream: AsyncIterable<Uint8Array>): Promise<Datasheet> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 }).catch(notKept)
    await this.#dropLeftovers()
    const known = await this.list()
    if (known.length >= FILES_MAX && !known.some((sheet) => sheet.name === name))
      throw new AppError('conflict', `${FILES_MAX} data sheets are kept already; remove some from ${this.#folder}`)
    const path = this.#pathOf(name)
    const part = join(this.#folder, `.${name}-${process.pid}-${this.#part++}${PART}`)
    try {
      const bytes = await writePdf(part, stream)
      await rename(part, path).catch(notKept)
      return { name, path, bytes }
    } catch (error) {
      await rm(part, { force: true })
      throw error
    }
  }

  #pathOf(name: string): string {
    return join(this.#folder, `${name}.pdf`)
  }

  async #dropLeftovers(): Promise<void> {
    for (const file of await readdir(this.#folder)) {
      if (!file.endsWith(PART)) continue
      const path = join(this.#folder, file)
      const facts = await stat(path).catch(() => undefined)
      if (facts && Date.now() - facts.mtimeMs > LEFTOVER_MS) await rm(path, { force: true })
    }
  }
}

/** As it comes in: never more than a chunk is in memory. */
async function writePdf(path: string, stream: AsyncIterable<Uint8Array>): Promise<number> {
  const file = await open(path, 'wx', 0o600).catch(notKept)
  try {
    let bytes = 0
    let head = Buffer.alloc(0)
    for await (const chunk of stream) {
      if (head.length < PDF_MAGIC.length) {
        head = Buffer.concat([head, chunk.subarray(0, PDF_MAGIC.length)])
        if (!PDF_MAGIC.startsWith(head.toString('latin1', 0, PDF_MAGIC.length))) throw noPdf()
      }
      bytes += chunk.length
      if (bytes > DATASHEET_BYTES_MAX) throw tooLarge()
      await file.writeFile(chunk).catch(notKept)
    }
    if (head.length < PDF_MAGIC.length) throw noPdf()
    await file.sync().catch(notKept)
    return bytes
  } finally {
    await file.close()
  }
}

/** It is this machine that fails, not who sends it. */
const notKept = (cause: Error): never => {
  throw new AppError('unavailable', `The data sheet could not be kept: ${cause.message}`, { cause })
}

const noPdf = () => new AppError('invalid_request', 'What is there is no PDF; a page that leads to the data sheet is not the data sheet')
const tooLarge = () => new AppError('too_large', `A data sheet may have at most ${DATASHEET_BYTES_MAX} bytes`)

const noFolder = (error: NodeJS.ErrnoException): string[] => {
  if (error.code === 'ENOENT') return []
  throw error
}
