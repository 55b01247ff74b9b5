/** Starts the fake and connects the channel to it. */
import type { Connected } from '@sluice/testkit/channel-testing'
import { startWebFake, type WebFake, type WebFakeOptions } from './fake.ts'

export const sectionOf = ({ sessionPath, webUrl, rootKey }: Pick<WebFake, 'sessionPath' | 'webUrl' | 'rootKey'>) => ({
  session_path: sessionPath,
  web_url: webUrl,
  web_root_key: rootKey,
  allowed_numbers: ['*'],
})

export async function connect(options: WebFakeOptions = {}): Promise<Connected<WebFake>> {
  const fake = await startWebFake(options)
  return { fake, section: sectionOf(fake) }
}
