/** The keys of `[channels_config.chatapp]` that cloud mode and web mode share: each is a feature of its own, and no key has two schemas. */
import * as v from 'valibot'

export const chatappKeys = {
  enabled: v.optional(v.pipe(v.boolean(), v.description('False keeps the section and disables the channel')), true),
  phone_number_id: v.optional(
    v.pipe(v.string(), v.description("The platform's id of our number; its presence activates cloud mode, also if `session_path` is set")),
  ),
  allowed_numbers: v.optional(
    v.pipe(
      v.array(v.pipe(v.string(), v.minLength(1))),
      v.description(
        'Telephone numbers with their country code, or ids of users who hide their number; * allows every sender, an empty list none',
      ),
    ),
    [],
  ),
  mode: v.optional(
    v.pipe(
      v.picklist(['business', 'personal']),
      v.description(
        '`personal`: a person uses the account, too, so web mode does not mark messages as read. Cloud mode always uses a business account and only checks the value',
      ),
    ),
    'business',
  ),
}
