/** The service by which other features sign people in with passkeys and issue a credential of their own. */
import { AppError, type Logger, type PasskeySignIn } from '@sluice/sdk'
import * as v from 'valibot'
import { signInFinishBody } from './bodies.ts'
import { issuerOf } from './passkeys.ts'
import type { SignIns } from './sign-ins.ts'

export const passkeySignIn = (signIns: SignIns, log: Logger): PasskeySignIn => ({
  start: () => signIns.start('anonymous'),
  async finish(body) {
    const read = v.safeParse(signInFinishBody, body)
    if (!read.success) throw new AppError('invalid_request', 'The answer of the authenticator is not valid')
    const { userId, passkey } = await signIns.verify(read.output, 'anonymous')
    log.info('passkey sign-in', { user: userId, label: passkey.label })
    return { label: passkey.label, role: passkey.role, issuedBy: issuerOf(userId, passkey) }
  },
})
