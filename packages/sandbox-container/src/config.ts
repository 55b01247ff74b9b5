/** The keys of `[security.sandbox]` that belong to the container backend. */
import * as v from 'valibot'

export const containerSection = {
  path: 'security.sandbox',
  schema: v.object({
    engine: v.optional(
      v.pipe(
        v.picklist(['auto', 'docker', 'podman']),
        v.description('The container engine; auto uses docker if it is installed, else podman'),
      ),
      'auto',
    ),
    image: v.optional(
      v.pipe(
        v.string(),
        v.regex(/^[\w][\w./:@-]*$/, 'must be the name of an image'),
        v.description('The image of containers; it must be present, because none is pulled, and contain /bin/sh'),
      ),
      'debian:stable-slim',
    ),
  }),
} as const

export type ContainerConfig = v.InferOutput<typeof containerSection.schema>
