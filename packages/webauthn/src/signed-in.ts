/** What a sign-in answers, whichever way it came. */
import * as v from 'valibot'
import type { SignedIn } from './sign-ins.ts'

export const signedInSchema = v.object({
  status: v.literal('authenticated'),
  token: v.string(),
  expires_at: v.string(),
  device_id: v.string(),
  user_id: v.string(),
})

export const signedIn = ({ token, expiresAtMs, deviceId, userId }: SignedIn): v.InferOutput<typeof signedInSchema> => ({
  status: 'authenticated',
  token,
  expires_at: new Date(expiresAtMs).toISOString(),
  device_id: deviceId,
  user_id: userId,
})
