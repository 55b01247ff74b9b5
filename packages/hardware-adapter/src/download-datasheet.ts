/** Fetches a data sheet from an address a model named. */

import { signalScope } from '@sluice/kit'
import { AppError, type Host } from '@sluice/sdk'
import { DATASHEET_BYTES_MAX, type Datasheet, type DatasheetFiles } from './datasheet-files.ts'

const DOWNLOAD_MS_MAX = 60_000

export interface Download {
  readonly name: string
  readonly url: string
  readonly signal: AbortSignal
}

/** Public addresses only; throws `upstream_timeout` after a minute, `upstream` for any status but 200. */
export async function downloadDatasheet(
  host: Pick<Host, 'publicFetch' | 'clock'>,
  files: DatasheetFiles,
  { name, url, signal }: Download,
): Promise<Datasheet> {
  using limit = signalScope([signal], DOWNLOAD_MS_MAX, host.clock)
  try {
    const response = await host.publicFetch(url, {
      headers: { accept: 'application/pdf' },
      signal: limit.signal,
      // One more, so that it is us who say what is too large.
      responseBytesMax: DATASHEET_BYTES_MAX + 1,
    })
    if (response.status !== 200 || !response.body) {
      await response.body?.cancel()
      throw new AppError('upstream', `The server answered with status ${response.status}`)
    }
    return await files.keep(name, response.body as unknown as AsyncIterable<Uint8Array>)
  } catch (error) {
    if (limit.timedOut) throw new AppError('upstream_timeout', 'The download took longer than a minute', { cause: error })
    if (signal.aborted) throw new AppError('aborted', 'The download was aborted', { cause: error })
    if (error instanceof AppError) throw error
    throw new AppError('upstream', 'The download broke off', { cause: error })
  }
}
