/** A real Chromium with an authenticator that is plugged in by its debugging protocol. */
import { testChromium } from '@sluice/qa/chromium'
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core'

/** The browser, or why there is none, as the end of a sentence. */
export const foundChromium = await testChromium()

export async function launchChromium(): Promise<Browser> {
  if ('missing' in foundChromium) throw new Error(foundChromium.missing)
  const { path, env } = foundChromium
  return chromium.launch({ executablePath: path, env: { ...(process.env as Record<string, string>), ...env }, args: ['--no-sandbox'] })
}

export interface Plugged {
  /** Whether its user can say who they are. */
  setVerified(isVerified: boolean): Promise<void>
  /** Takes the passkey out, so that it can be put into another authenticator, or back. */
  passkeys(): Promise<readonly Credential[]>
  putBack(credential: Credential, signCount: number): Promise<void>
}

/** As the debugging protocol has it. */
export interface Credential {
  readonly credentialId: string
  readonly signCount: number
}

export async function plugIn(page: Page): Promise<Plugged> {
  const session: CDPSession = await page.context().newCDPSession(page)
  await session.send('WebAuthn.enable')
  const options = { protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true } as const
  const { authenticatorId } = await session.send('WebAuthn.addVirtualAuthenticator', {
    options: { ...options, isUserVerified: true, automaticPresenceSimulation: true },
  })
  return {
    async setVerified(isUserVerified) {
      await session.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified })
    },
    passkeys: async () => (await session.send('WebAuthn.getCredentials', { authenticatorId })).credentials,
    async putBack(credential, signCount) {
      await session.send('WebAuthn.clearCredentials', { authenticatorId })
      await session.send('WebAuthn.addCredential', { authenticatorId, credential: { ...credential, signCount } as never })
    },
  }
}
