/** Passkeys: an operator with a token registers one, and its owner signs in with it for a new token (docs/passkeys.md). */
import { defineFeature } from '@sluice/sdk'
import { apiRoutes } from './api-routes.ts'
import { checkPasskeys } from './check-passkeys.ts'
import { passkeyCommands } from './commands.ts'
import { webauthnSection } from './config.ts'
import { pageRoutes } from './page-routes.ts'
import { passkeySignIn } from './passkey-sign-in.ts'
import { PasskeyStore } from './passkeys.ts'
import { Registrations } from './registrations.ts'
import { SignIns } from './sign-ins.ts'

export default defineFeature({
  id: 'webauthn',
  section: webauthnSection,
  build(host, config) {
    const passkeys = new PasskeyStore(host.secrets, () => host.service('pairing'))
    const commands = passkeyCommands(host, passkeys)
    if (!config.enabled) return { commands, disabledReason: '`enabled` is false' }
    const registrations = new Registrations(host, config, passkeys)
    const signIns = new SignIns(host, config, passkeys)
    return {
      commands,
      routes: [...apiRoutes(host, passkeys, registrations, signIns), ...pageRoutes(config, signIns)],
      services: { passkeys: passkeySignIn(signIns, host.log) },
      check: () => checkPasskeys(config, host.secrets, passkeys),
    }
  },
})
