/** Reads a packed plugin, a `.tar.gz` from an https URL or this machine, with bounds on its packed and unpacked size. */
import { promisify } from 'node:util'
import { gunzip } from 'node:zlib'
import { readAll, signalScope } from '@sluice/kit'
import { AppError, type Host } from '@sluice/sdk'
import { MODULE_BYTES_MAX, readRegularFile } from './plugin-files.ts'
import { readTar } from './read-tar.ts'

/** Leaves room for a module of the maximum size and other files of its publisher. */
const UNPACKED_BYTES_MAX = 2 * MODULE_BYTES_MAX
const TIMEOUT_MS = 60_000

/** Returns the files of the archive by name. Throws `forbidden` for a URL or redirect that is not https, and `upstream`. */
export async function fetchArchive(
  publicFetch: Host['publicFetch'],
  url: string,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, Uint8Array>> {
  using limit = signalScope([signal], TIMEOUT_MS)
  const response = await publicFetch(url, {
    signal: limit.signal,
    responseBytesMax: MODULE_BYTES_MAX,
    admit: ({ protocol }) => {
      if (protocol !== 'https:') throw new AppError('forbidden', 'Plugins can be installed over https only')
    },
  })
  if (response.status !== 200) throw new AppError('upstream', `The server answered with status ${response.status}`)
  return readTar(await unpack(await readAll(response)))
}

/** Returns the files of the archive by name. Throws `not_found` when the archive does not exist. */
export async function openArchive(file: string): Promise<ReadonlyMap<string, Uint8Array>> {
  const packed = await readRegularFile(file, MODULE_BYTES_MAX, file)
  if (!packed) throw new AppError('not_found', `The file ${file} does not exist`)
  return readTar(await unpack(packed))
}

async function unpack(packed: Uint8Array): Promise<Uint8Array> {
  try {
    return await promisify(gunzip)(packed, { maxOutputLength: UNPACKED_BYTES_MAX })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE')
      throw new AppError('too_large', `The archive unpacks to more than ${UNPACKED_BYTES_MAX} bytes`)
    throw new AppError('invalid_request', 'The archive is not a .tar.gz file')
  }
}
