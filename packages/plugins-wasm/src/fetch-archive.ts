/** Reads a packed plugin: a `.tar.gz` over https or of this machine, of a bounded size packed and unpacked. */
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { readAll, signalScope } from '@sluice/kit'
import { AppError, type Host } from '@sluice/sdk'
import { MODULE_BYTES_MAX } from './plugin-files.ts'
import { readRegularFile } from './read-regular-file.ts'
import { readTar } from './read-tar.ts'

/** The module, and whatever else its publisher put in. */
const UNPACKED_BYTES_MAX = 2 * MODULE_BYTES_MAX
const TIMEOUT_MS = 60_000

export async function fetchArchive(
  host: Pick<Host, 'publicFetch'>,
  url: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Uint8Array>> {
  using limit = signalScope([signal], TIMEOUT_MS)
  const response = await host.publicFetch(url, {
    signal: limit.signal,
    responseBytesMax: MODULE_BYTES_MAX,
    admit: ({ protocol }) => {
      if (protocol !== 'https:') throw new AppError('forbidden', 'plugins are installed over https only')
    },
  })
  if (response.status !== 200) throw new AppError('upstream', `the server answered with status ${response.status}`)
  return readTar(await unpack(await readAll(response)))
}

/** Throws `not_found` if there is no such file. */
export async function openArchive(file: string): Promise<ReadonlyMap<string, Uint8Array>> {
  const packed = await readRegularFile(file, MODULE_BYTES_MAX, file)
  if (!packed) throw new AppError('not_found', `there is no file ${file}`)
  return readTar(await unpack(packed))
}

async function unpack(packed: Uint8Array): Promise<Uint8Array> {
  try {
    return await promisify(gunzip)(packed, { maxOutputLength: UNPACKED_BYTES_MAX })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
      throw new AppError('too_large', `the archive unpacks to more than ${UNPACKED_BYTES_MAX} bytes`)
    }
    throw new AppError('invalid_request', 'the archive is no .tar.gz')
  }
}
