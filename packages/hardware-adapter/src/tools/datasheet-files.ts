/** The folder of data sheets. File names stay inside the folder, and a file appears only once it is complete. */
import { constants } from 'node:fs'
import { lstat, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError } from '@sluice/sdk'

export const DATASHEET_BYTES_MAX = 20 * 1024 * 1024
/** The largest number of stored data sheets. */
const FILES_MAX = 200
const NAME_CHARS_MAX = 64
const PDF_MAGIC = '%PDF-'
const PART = '.part'
/** The age after which a partial file is the leftover of a crash. */
const LEFTOVER_AGE_MS = 60 * 60 * 1000

export interface Datasheet {
  /** The name as `datasheetName` returns it. */
  readonly name: string
  readonly path: string
  readonly bytes: number
}

/** Returns the file name of a part, in lower-case letters, digits and underscores. Throws `invalid_request` when the part has no letter or digit. */
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

  /** Returns the stored data sheets, sorted by name. */
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
   * Stores the stream as the data sheet of that name and replaces an older one. Throws `invalid_request` when it is not a PDF,
   * `too_large` above 20 MiB, `conflict` when 200 data sheets are stored already, and `unavailable` when the folder cannot be
   * written.
   */
  async store(name: string, stream: AsyncIterable<Uint8Array>): Promise<Datasheet> {
    await mkdir(this.#folder, { recursive: true, mode: 0o700 }).catch(notStored)
    await this.#dropLeftovers()
    const known = await this.list()
    if (known.length >= FILES_MAX && !known.some((sheet) => sheet.name === name))
      throw new AppError('conflict', `${FILES_MAX} data sheets are stored already; remove some from ${this.#folder}`)
    const path = this.#pathOf(name)
    const part = join(this.#folder, `.${name}-${process.pid}-${this.#part++}${PART}`)
    try {
      const bytes = await writePdf(part, stream)
      await rename(part, path).catch(notStored)
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
      if (facts && Date.now() - facts.mtimeMs > LEFTOVER_AGE_MS) await rm(path, { force: true })
    }
  }
}

/** Writes chunk by chunk, so that only one chunk is in memory. Returns the number of bytes. */
async function writePdf(path: string, stream: AsyncIterable<Uint8Array>): Promise<number> {
  const file = await open(path, 'wx', 0o600).catch(notStored)
  try {
    let bytes = 0
    let head = Buffer.alloc(0)
    for await (const chunk of stream) {
      if (head.length < PDF_MAGIC.length) {
        head = Buffer.concat([head, chunk.subarray(0, PDF_MAGIC.length)])
        if (!PDF_MAGIC.startsWith(head.toString('latin1', 0, PDF_MAGIC.length))) throw notPdf()
      }
      bytes += chunk.length
      if (bytes > DATASHEET_BYTES_MAX) throw tooLarge()
      await file.writeFile(chunk).catch(notStored)
    }
    if (head.length < PDF_MAGIC.length) throw notPdf()
    await file.sync().catch(notStored)
    return bytes
  } finally {
    await file.close()
  }
}

/** The code is `unavailable`, because this machine fails and not the server that sends the file. */
const notStored = (cause: Error): never => {
  throw new AppError('unavailable', `The data sheet could not be stored: ${cause.message}`, { cause })
}

const notPdf = () => new AppError('invalid_request', 'The file is not a PDF; use the URL of the PDF itself, not of a page that links to it')
const tooLarge = () => new AppError('too_large', `The data sheet is larger than ${DATASHEET_BYTES_MAX} bytes`)

const noFolder = (error: NodeJS.ErrnoException): string[] => {
  if (error.code === 'ENOENT') return []
  throw error
}
