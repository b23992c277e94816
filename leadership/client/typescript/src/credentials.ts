import { readFile } from "node:fs/promises";

/** Limits a token, in characters; an ID token has about 1 KiB. */
const maxToken = 16 << 10;

/**
 * Returns a credential that reads the file at each call, as whatever renews the token writes it
 * anew. White space around the token does not count.
 */
export function fileCredential(path: string): () => Promise<string> {
  return async () => {
    const token = (await readFile(path, "utf8")).trim();
    if (token === "" || token.length > maxToken || /[^\x21-\x7e]/.test(token)) {
      throw new Error(`the file ${JSON.stringify(path)} does not have one token of 1 to ${maxToken} characters`);
    }
    return token;
  };
}

/** How long before its expiry a token is replaced, in milliseconds. */
const tokenMargin = 120_000;
/** Limits a call of the metadata server, in milliseconds. */
const metadataTimeout = 5_000;

/**
 * Returns a credential that gets an ID token of the process's service account from Google Cloud's
 * metadata server. audience is the URL of the Regent service, or its custom audience. A token is kept
 * until shortly before it expires, and is then replaced in the background. Callers that wait at the
 * same time share one call. The environment variable GCE_METADATA_HOST names another server.
 */
export function metadataCredential(audience: string): () => Promise<string> {
  let last = "";
  let expires = 0; // on Date.now
  let pending: Promise<string> | undefined;
  const replace = async (): Promise<string> => {
    try {
      const query = new URLSearchParams({ audience, format: "full" });
      const token = await metadata(`service-accounts/default/identity?${query}`, metadataTimeout);
      expires = expiry(token);
      return (last = token);
    } finally {
      pending = undefined;
    }
  };
  return async () => {
    const left = expires - Date.now();
    if (left <= tokenMargin && !pending) {
      pending = replace();
      pending.catch(() => {}); // its error is for those that wait
    }
    return left > 0 ? last : pending!;
  };
}

/** @internal Asks the metadata server of the instance. See https://cloud.google.com/run/docs/container-contract#metadata-server. */
export async function metadata(what: string, timeout: number): Promise<string> {
  const host = process.env["GCE_METADATA_HOST"] || "metadata.google.internal";
  let response: Response;
  let text: string;
  try {
    response = await fetch(`http://${host}/computeMetadata/v1/instance/${what}`, {
      headers: { "Metadata-Flavor": "Google" },
      redirect: "manual",
      signal: AbortSignal.timeout(timeout),
    });
    text = await limited(response);
  } catch (e) {
    throw new Error("the metadata server does not answer", { cause: e });
  }
  if (response.status !== 200 || response.headers.get("Metadata-Flavor") !== "Google") {
    throw new Error(`the metadata server answered with HTTP status ${response.status}`);
  }
  return text.trim();
}

/** Reads a body of at most maxToken bytes. */
async function limited(response: Response): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of response.body ?? []) {
    text += decoder.decode(bytes as Uint8Array, { stream: true });
    if (text.length > maxToken) throw new Error(`its answer has more than ${maxToken} characters`);
  }
  return text;
}

/**
 * Returns when a token expires, in milliseconds since 1970. It does not verify the token: its
 * recipient does.
 */
function expiry(token: string): number {
  try {
    const parts = token.split(".");
    const claims: unknown = JSON.parse(Buffer.from(parts[1]!, "base64url").toString());
    const exp = (claims as { exp: unknown }).exp;
    if (parts.length === 3 && typeof exp === "number" && exp > 0) return exp * 1000;
  } catch {
    // not a token
  }
  throw new Error("the metadata server's answer is not a token");
}
