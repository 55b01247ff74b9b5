// Runs Sluice in an application that is a chat itself: what people write here becomes messages of a channel.
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { createSluice } from '@sluice/daemon'
import offline from '@sluice/provider-offline'
import { createDeskChat } from './desk-chat.mjs'

const { DATA_DIR = mkdtempSync(join(tmpdir(), 'embed-channel-')) } = process.env
const desk = createDeskChat()
await using sluice = await createSluice({ features: [offline, desk.feature], dataDir: DATA_DIR, logger: false })
sluice.on('turn_completed', ({ source, took_ms }) => console.log(`(a turn for ${source} took ${Math.round(took_ms)} ms)`))

if (process.argv.includes('--try')) {
  console.log(await desk.ask('ann', 'hello'))
  console.log(await desk.ask('ann', 'what did I say?'))
} else {
  const lines = createInterface({ input: process.stdin, output: process.stdout })
  lines.on('SIGINT', () => lines.close())
  for (lines.prompt(); ; lines.prompt()) {
    const text = await lines.question('').catch(() => '')
    if (text === '') break
    console.log(await desk.ask('ann', text))
  }
  lines.close()
}
