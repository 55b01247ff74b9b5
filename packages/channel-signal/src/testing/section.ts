/** Starts the fake and connects the channel to it. */
import type { Connected } from '@sluice/testkit/channel-testing'
import { SIGNAL_ACCOUNT, type SignalFake, type SignalFakeOptions, startSignalFake } from './fake.ts'

export async function connect(nowMs: () => number, options?: SignalFakeOptions): Promise<Connected<SignalFake>> {
  const fake = await startSignalFake(nowMs, options)
  return { fake, section: { http_url: fake.url, account: SIGNAL_ACCOUNT, allowed_from: ['*'] } }
}
