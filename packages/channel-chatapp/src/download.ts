/** One file from a host that was found to be the provider's, and no more of it than is wanted. */

import { readUpTo, signalScope } from '@sluice/kit'
import { AppError } from '@sluice/sdk'
import type { Graph } from './graph.ts'

export interface DownloadOptions {
  readonly bytesMax: number
  readonly signal: AbortSignal
}

const TIMEOUT_MS = 120_000
/** The provider refuses clients that do not say who they are. */
const USER_AGENT = 'Sluice'

/** Undefined if there is more than `bytesMax` of it. Follows no redirect, so the token stays where it was sent. */
export async function download(graph: Graph, url: string, { bytesMax, signal }: DownloadOptions): Promise<Uint8Array | undefined> {
  using limit = signalScope([signal], TIMEOUT_MS)
  try {
    const response = await graph.fetch(url, {
      headers: { ...graph.authorization(), 'user-agent': USER_AGENT },
      redirect: 'manual',
      signal: limit.signal,
    })
    if (response.status === 200) return await readUpTo(response, bytesMax)
    await response.body?.cancel()
    throw refused(response.status)
  } catch (error) {
    if (error instanceof AppError) throw error
    if (signal.aborted) throw new AppError('aborted', 'The download from chatapp was cut off')
    throw new AppError(
      'unavailable',
      limit.timedOut ? `chatapp sent no whole file within ${TIMEOUT_MS / 1000} s` : 'The download broke off',
    )
  }
}

const refused = (status: number): AppError => {
  const passes = status >= 500 || [401, 408, 429].includes(status)
  return new AppError(passes ? 'unavailable' : 'invalid_request', `chatapp answered ${status} when asked for an attachment`)
}
