package export

import "context"

// GoogleToken is a token as Google's collector is sent, and the project of the credentials.
func GoogleToken(ctx context.Context) (token, project string, err error) {
	c, err := credentials(ctx)
	if err != nil {
		return "", "", err
	}
	t, err := c.TokenSource.Token()
	if err != nil {
		return "", "", err
	}
	return t.AccessToken, c.ProjectID, nil
}
