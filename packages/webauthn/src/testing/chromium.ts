/** A real Chromium with a virtual authenticator, which its debugging protocol provides. */
import { testChromium } from '@sluice/qa/chromium'
import { type Browser, type CDPSession, chromium, type Page } from 'playwright-core'

/** The browser on this machine, or a clause with the reason why it is missing. */
export const foundChromium = await testChromium()

export async function launchChromium(): Promise<Browser> {
  if ('missing' in foundChromium) throw new Error(foundChromium.missing)
  const { path, env } = foundChromium
  return chromium.launch({ executablePath: path, env: { ...(process.env as Record<string, string>), ...env }, args: ['--no-sandbox'] })
}

export interface VirtualAuthenticator {
  /** Sets whether its user passes the user verification. */
  setVerified(isVerified: boolean): Promise<void>
  passkeys(): Promise<readonly Credential[]>
  /** Replaces all passkeys by this one with the given counter. */
  replacePasskeys(credential: Credential, signCount: number): Promise<void>
}

/** A passkey in the form of the debugging protocol. */
export interface Credential {
  readonly credentialId: string
  readonly signCount: number
}

export async function addAuthenticator(page: Page): Promise<VirtualAuthenticator> {
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
    async replacePasskeys(credential, signCount) {
      await session.send('WebAuthn.clearCredentials', { authenticatorId })
      await session.send('WebAuthn.addCredential', { authenticatorId, credential: { ...credential, signCount } as never })
    },
  }
}
