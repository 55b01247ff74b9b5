/** The keys of `[security.sandbox]` that are the container's. */
import * as v from 'valibot'

export const containerSection = {
  path: 'security.sandbox',
  schema: v.object({
    engine: v.optional(
      v.pipe(v.picklist(['auto', 'docker', 'podman']), v.description('Whose containers; auto takes docker where it is installed')),
      'auto',
    ),
    image: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[\w][\w./:@-]*$/, 'must be the name of an image'),
        v.description('What containers are made of: an image that is there already, with a shell in it; none is pulled'),
      ),
      'debian:stable-slim',
    ),
  }),
} as const

export type ContainerConfig = v.InferOutput<typeof containerSection.schema>
