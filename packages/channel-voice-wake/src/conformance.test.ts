import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { channelConformance } from '@sluice/testkit/channel'
import { afterAll, expect, vi } from 'vitest'
import { ABILITIES } from './abilities.ts'
import feature from './index.ts'
import { startMicrophoneFake } from './testing/index.ts'

/** A recorder that is found; the fake takes the place of the running one. */
const folder = mkdtempSync(join(tmpdir(), 'sluice-voice-'))
writeFileSync(join(folder, 'arecord'), '')
chmodSync(join(folder, 'arecord'), 0o700)
vi.stubEnv('PATH', `${folder}:${process.env.PATH}`)
afterAll(() => {
  vi.unstubAllEnvs()
  rmSync(folder, { recursive: true })
})

const FORGETS = 'a microphone keeps nothing that was said while no recorder ran'

channelConformance({
  names: ABILITIES.names,
  feature,
  config: { wake_word: 'hey sluice' },
  allowKey: 'allowed_users',
  secrets: [],
  listen: {
    host() {
      const fake = startMicrophoneFake()
      const { spawn } = fake.host
      return {
        ...fake.host,
        spawn: async (request) => {
          const running = spawn?.(request)
          fake.say('Hey, Sluice! Turn on the light.')
          fake.say('The weather is nice today.')
          if (!running) throw new Error('the fake starts no recorder')
          return running
        },
      }
    },
    expect: [
      {
        id: expect.stringMatching(/^voice_wake_[0-9a-f-]{36}$/) as string,
        account: 'microphone',
        sender: 'voice_user',
        to: { to: 'voice_user' },
        addressed: 'direct',
        text: 'Turn on the light.',
        sentAtMs: Date.UTC(2026, 0, 1),
      },
    ],
    async platform() {
      const fake = startMicrophoneFake()
      return {
        fake,
        config: { wake_word: 'hey sluice' },
        host: fake.host,
        say: (text) => fake.say(`hey sluice ${text}`),
        refuse: () => fake.setTranscription(false),
      }
    },
  },
  except: [
    { rule: 'the allowlist equals the configured one, even when empty', why: 'all people at the microphone are one sender' },
    { rule: 'a break of 25 s ends within 5 s of the return of the platform, and no message is lost or doubled', why: FORGETS },
    { rule: 'a delivery that failed after an outage is delivered again', why: FORGETS },
    { rule: 'a message that was not durable when the process was killed is delivered again', why: FORGETS },
  ],
})
