/** Where a command finds the daemon it talks to. */
import { AppError } from '@sluice/sdk'
import type { CliContext } from './context.ts'
import { probeDaemon } from './probe-daemon.ts'

/** `--url`, or the daemon that runs on the data directory; without a slash at its end. Throws `unavailable` if there is none. */
export async function daemonAddress({ options, dataDir }: Pick<CliContext, 'options' | 'dataDir'>): Promise<string> {
  const given = options.url
  if (typeof given === 'string' && given !== '') {
    if (!/^https?:$/.test(URL.parse(given)?.protocol ?? ''))
      throw new AppError('invalid_request', `--url wants an address such as http://127.0.0.1:42617, not '${given}'`)
    return given.replace(/\/$/, '')
  }
  const found = await probeDaemon(dataDir)
  if (!found.running)
    throw new AppError('unavailable', `no daemon to send to: ${found.reason}; start one with 'sluice daemon', or name one with --url`)
  return found.url
}
